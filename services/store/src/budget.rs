//! What an account may spend on models in a day, and what it has spent.

use std::time::Duration;

use domain::Timestamp;

/// Nanoseconds of a day.
const DAY: i64 = 24 * 3600 * 1_000_000_000;

/// What may be spent between two midnights (UTC). What is `None` has no ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Tokens of prompts and replies.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Tokens of prompts and replies.
    pub tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
}

impl Budget {
    /// This one, or another where it has no ceiling at all.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::default() { other } else { self }
    }

    /// What is left of it; `None` if nothing is.
    pub fn less(self, spent: Spent) -> Option<Self> {
        let tokens = self.tokens.map(|most| most.saturating_sub(spent.tokens));
        let cost_usd = self.cost_usd.map(|most| most - spent.cost_usd);
        let is_left = tokens.is_none_or(|left| left > 0) && cost_usd.is_none_or(|left| left > 0.0);
        is_left.then_some(Self { tokens, cost_usd })
    }
}

impl Spent {
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost_usd: self.cost_usd + other.cost_usd }
    }
}

/// The number of a day. Days have no zones and no summers, so that all processes mean the same one.
pub(crate) fn day(time: Timestamp) -> i64 {
    time.0.div_euclid(DAY)
}

/// How long it is until budgets begin anew.
pub fn until_tomorrow(now: Timestamp) -> Duration {
    Duration::from_nanos((DAY - now.0.rem_euclid(DAY)).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_used_up_first_ends_it() {
        let spent = |tokens, cost_usd| Spent { tokens, cost_usd };
        let both = Budget { tokens: Some(10), cost_usd: Some(1.0) };
        assert_eq!(both.less(spent(4, 0.5)), Some(Budget { tokens: Some(6), cost_usd: Some(0.5) }));
        for gone in [spent(10, 0.0), spent(99, 0.0), spent(0, 1.0), spent(0, 7.0)] {
            assert_eq!(both.less(gone), None, "{gone:?}");
        }
        assert_eq!(Budget::default().less(spent(u64::MAX, 9e9)), Some(Budget::default()));
    }

    #[test]
    fn a_day_ends_at_midnight() {
        let at = |seconds: i64| Timestamp(seconds * 1_000_000_000);
        assert_eq!((day(at(86_399)), day(at(86_400)), day(at(-1))), (0, 1, -1));
        assert_eq!(until_tomorrow(at(86_399)), Duration::from_secs(1));
        assert_eq!(until_tomorrow(at(86_400)), Duration::from_secs(86_400));
    }
}
