//! What stands against a command that would run unasked.

use super::Effect;

/// Why a command needs a person, and what it could do to the world. The reason completes "`program`: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objection {
    pub(super) effect: Effect,
    pub(super) reason: String,
}

impl Objection {
    /// It only reads, and is not on the list.
    pub(super) fn read(reason: impl Into<String>) -> Self {
        Self { effect: Effect::Read, reason: reason.into() }
    }

    /// It may show secrets.
    pub(super) fn sensitive(reason: impl Into<String>) -> Self {
        Self { effect: Effect::SensitiveRead, reason: reason.into() }
    }

    /// It may change something.
    pub(super) fn mutation(reason: impl Into<String>) -> Self {
        Self { effect: Effect::Mutation, reason: reason.into() }
    }
}

/// What is not understood may change something.
impl From<String> for Objection {
    fn from(reason: String) -> Self {
        Self::mutation(reason)
    }
}

impl From<&str> for Objection {
    fn from(reason: &str) -> Self {
        Self::mutation(reason)
    }
}
