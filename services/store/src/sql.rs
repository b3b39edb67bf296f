//! Numbers and words as databases keep them.

use domain::Outcome;

use crate::{CredentialKind, Kind, State};

/// Bytes of events that one read returns, unless a single event has more.
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// Databases have no unsigned numbers. No log has so many events that this matters.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that [`int`] made.
pub(crate) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Statements name `1`, a run that goes on.
pub(crate) fn of_state(state: State) -> i16 {
    match state {
        State::Empty => 0,
        State::Running => 1,
        State::Ended(Outcome::Finished) => 2,
        State::Ended(Outcome::Suspended) => 3,
        State::Ended(Outcome::Failed) => 4,
        State::Ended(Outcome::Cancelled) => 5,
    }
}

pub(crate) fn state(code: i16) -> Option<State> {
    Some(match code {
        0 => State::Empty,
        1 => State::Running,
        2 => State::Ended(Outcome::Finished),
        3 => State::Ended(Outcome::Suspended),
        4 => State::Ended(Outcome::Failed),
        5 => State::Ended(Outcome::Cancelled),
        _ => return None,
    })
}

/// The code of what no sweep takes.
pub(crate) const AGENT: i16 = 2;

pub(crate) fn of_kind(kind: Kind) -> i16 {
    match kind {
        Kind::Run => 0,
        Kind::Session => 1,
        Kind::Agent => AGENT,
        Kind::Image => 3,
        Kind::Trail => 4,
    }
}

pub(crate) fn kind(code: i16) -> Option<Kind> {
    Some(match code {
        0 => Kind::Run,
        1 => Kind::Session,
        AGENT => Kind::Agent,
        3 => Kind::Image,
        4 => Kind::Trail,
        _ => return None,
    })
}

pub(crate) fn of_credential(kind: CredentialKind) -> i16 {
    match kind {
        CredentialKind::Key => 0,
        CredentialKind::JoinToken => 1,
        CredentialKind::Cluster => 2,
    }
}

pub(crate) fn credential(code: i16) -> Option<CredentialKind> {
    Some(match code {
        0 => CredentialKind::Key,
        1 => CredentialKind::JoinToken,
        2 => CredentialKind::Cluster,
        _ => return None,
    })
}
