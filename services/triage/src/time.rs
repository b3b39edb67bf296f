//! Ages and points in time, as they are found in data. There is no clock.

use std::fmt;

/// How long ago something was, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age(pub(crate) u64);

/// What is older is not news.
pub(crate) const RECENT: Age = Age(3600);

impl Age {
    /// Reads kubectl's form: `40s`, `2m30s`, `3d4h`, `1y12d`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut total = 0_u64;
        let mut number = None::<u64>;
        for c in text.chars() {
            if let Some(digit) = c.to_digit(10) {
                number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(digit))?);
                continue;
            }
            let unit = match c {
                's' => 1,
                'm' => 60,
                'h' => 3600,
                'd' => 86_400,
                'y' => 31_536_000,
                _ => return None,
            };
            total = total.checked_add(number.take()?.checked_mul(unit)?)?;
        }
        (number.is_none() && !text.is_empty()).then_some(Self(total))
    }

    pub(crate) fn is_recent(self) -> bool {
        self <= RECENT
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = match self.0 {
            s @ 0..120 => (s, "second"),
            s @ 120..7200 => (s / 60, "minute"),
            s @ 7200..172_800 => (s / 3600, "hour"),
            s => (s / 86_400, "day"),
        };
        write!(f, "{count} {unit}{}", if count == 1 { "" } else { "s" })
    }
}

/// A point in time: seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

impl Moment {
    /// Reads an RFC 3339 time.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|stamp| Self(stamp.as_second()))
    }

    /// The time that the agent wrote into the question: "The current UTC date and time are …".
    pub(crate) fn stated(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once("current UTC date and time are ")?;
        let stamp: String = rest.chars().take(19).map(|c| if c == ' ' { 'T' } else { c }).collect();
        Self::parse(&format!("{stamp}Z"))
    }

    /// How long `self` is before `now`; nothing of the future is older than zero.
    pub(crate) fn before(self, now: Self) -> Age {
        Age(u64::try_from(now.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_of_kubectl_are_read() {
        for (text, seconds) in
            [("0s", 0), ("40s", 40), ("2m30s", 150), ("3d4h", 273_600), ("1y1d", 31_622_400)]
        {
            assert_eq!(Age::parse(text), Some(Age(seconds)), "{text}");
        }
        for text in ["", "5", "m", "<unknown>", "4x", "99999999999999999999d"] {
            assert_eq!(Age::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_stated_time_is_found() {
        let text = "x\n\nThe current UTC date and time are 2026-11-21 21:54:27.249102+00:00. The current";
        let now = Moment::stated(text).expect("a time");
        assert_eq!(Moment::parse("2026-11-21T21:50:27Z").map(|then| then.before(now)), Some(Age(240)));
    }
}
