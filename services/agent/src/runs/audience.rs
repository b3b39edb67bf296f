//! Who follows a run, as far as this agent knows.

use tokio::time::Instant;

/// Whether somebody follows a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Somebody reads it here, or it goes on without readers.
    Here,
    /// Somebody reads it through another agent, and will give a sign of life before then.
    Elsewhere(Instant),
    /// Nobody does.
    Gone,
}

impl Audience {
    /// Whether that is so now.
    pub(crate) fn is_there(self) -> bool {
        match self {
            Self::Here => true,
            Self::Elsewhere(until) => Instant::now() < until,
            Self::Gone => false,
        }
    }
}
