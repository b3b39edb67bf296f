//! Why a store did not do what it was asked.

use domain::LogId;

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such log, or it is no longer kept.
    #[error("there is no log {0}")]
    UnknownLog(LogId),
    /// The log exists already, and not because this request was made before.
    #[error("there is a log {0} already")]
    Exists(LogId),
    /// The log has another owner by now. Whoever gets this must stop.
    #[error("log {0} has been taken over by another owner")]
    Fenced(LogId),
    /// The owner is not where it thought it was.
    #[error("log {log} is at position {found}, not at {expected}")]
    Conflict {
        /// The log.
        log: LogId,
        /// Where the writer thought it was.
        expected: u64,
        /// Where it is.
        found: u64,
    },
    /// The positions of a batch do not follow each other.
    #[error("an event of log {log} has position {found}, not {expected}")]
    Gap {
        /// The log.
        log: LogId,
        /// The position that was due.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// An id, a key or an account is too long, or has a character that not every store can hold.
    #[error("{0} must have 1 to 512 bytes and no control characters")]
    BadName(&'static str),
    /// What is stored is not what was written. The log cannot be read past this event.
    #[error("log {log} is damaged at position {position}: {why}")]
    Corrupt {
        /// The log.
        log: LogId,
        /// The event that cannot be read.
        position: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The store cannot be reached or cannot write now. What was asked for may have happened.
    #[error("the store is not available: {0}")]
    Unavailable(String),
}

/// The longest name, in bytes.
const NAME: usize = 512;

/// Checks a text that is used as a key.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), Error> {
    let fits = (1..=NAME).contains(&name.len()) && !name.contains(char::is_control);
    if fits { Ok(()) } else { Err(Error::BadName(what)) }
}
