//! What a person's permission may let run here, whoever signed it.

use std::str::FromStr;

use super::Effect;

/// The kinds of calls that may be allowed from outside. The policy of this executor comes first: a permission never
/// lifts what it forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifts {
    read: bool,
    sensitive_read: bool,
    mutation: bool,
}

impl Default for Lifts {
    fn default() -> Self {
        Self { read: true, sensitive_read: true, mutation: true }
    }
}

impl Lifts {
    /// None of them.
    pub const NONE: Self = Self { read: false, sensitive_read: false, mutation: false };

    pub(crate) fn allow(self, effect: Effect) -> bool {
        match effect {
            Effect::Read => self.read,
            Effect::SensitiveRead => self.sensitive_read,
            Effect::Mutation => self.mutation,
        }
    }
}

impl FromStr for Lifts {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut lifts = Self::NONE;
        for name in text.split(',').map(str::trim) {
            match name {
                "none" | "" => {}
                "read" => lifts.read = true,
                "sensitive_read" => lifts.sensitive_read = true,
                "mutation" => lifts.mutation = true,
                _ => return Err(()),
            }
        }
        Ok(lifts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_lifted() {
        let allowed = |text: &str| {
            let lifts: Lifts = text.parse().unwrap();
            [Effect::Read, Effect::SensitiveRead, Effect::Mutation].map(|effect| lifts.allow(effect))
        };
        assert_eq!(allowed("none"), [false; 3]);
        assert_eq!(allowed("read, sensitive_read"), [true, true, false]);
        assert_eq!(allowed("mutation"), [false, false, true]);
        assert_eq!("everything".parse::<Lifts>(), Err(()));
        assert_eq!(Lifts::default(), "read,sensitive_read,mutation".parse().unwrap());
    }
}
