//! Ids of sessions and of what is in them: a prefix and 32 lower-case hex digits.

use domain::{LogId, Timestamp};
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

pub(super) const SESSION: &str = "session_";
const EVENT: &str = "event_";
/// Bits of an event's id that bind it to its session.
const TAG: u32 = 42;

/// Something new.
pub(super) fn new(prefix: &str) -> LogId {
    LogId::new(format!("{prefix}{}", Uuid::now_v7().simple()))
}

/// Whether a log is a session's.
pub(crate) fn is_session(log: &LogId) -> bool {
    hex(log.as_str(), SESSION).is_some()
}

/// A new message; its id tells nobody when it was made.
pub(super) fn new_message() -> String {
    format!("message_{}", Uuid::new_v4().simple())
}

/// The id of a thing that is made at a time out of something: the same again, whoever makes it.
pub(super) fn made_of(prefix: &str, time: Timestamp, seed: &str) -> String {
    let digest = Sha256::digest(format!("{prefix}\n{seed}"));
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    let made = Builder::from_unix_timestamp_millis(millis(time), &random).into_uuid();
    format!("{prefix}{}", made.simple())
}

/// The same, without its time.
pub(super) fn named(prefix: &str, seed: &str) -> String {
    let digest = Sha256::digest(format!("{prefix}\n{seed}"));
    let mut random = [0; 16];
    random.copy_from_slice(&digest[..16]);
    format!("{prefix}{}", Builder::from_random_bytes(random).into_uuid().simple())
}

/// The id of an event: a UUIDv7 that holds its sequence and is good for its session only.
pub(super) fn event(session: &str, sequence: u64, time: Timestamp) -> String {
    let millis = millis(time) & 0xffff_ffff_ffff;
    let sequence = sequence & 0xffff_ffff;
    let tag = tag(session, sequence, millis);
    let mut bits = u128::from(millis) << 80;
    bits |= 0x7 << 76;
    bits |= u128::from(sequence >> 20) << 64;
    bits |= 0b10 << 62;
    bits |= u128::from(sequence & 0xf_ffff) << TAG;
    bits |= u128::from(tag);
    format!("{EVENT}{bits:032x}")
}

/// Why an id tells no place in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadEvent {
    #[error("invalid since_id: it is not `event_` and 32 hex digits")]
    Malformed,
    #[error("event cursor does not belong to this session")]
    Foreign,
}

/// The sequence of an event of a session.
pub(super) fn sequence(session: &str, id: &str) -> Result<u64, BadEvent> {
    let bits = hex(id, EVENT).ok_or(BadEvent::Malformed)?;
    let part = |shift: u32, mask: u128| u64::try_from((bits >> shift) & mask).unwrap_or_default();
    let sequence = (part(64, 0xfff) << 20) | part(TAG, 0xf_ffff);
    let ours = event(session, sequence, Timestamp(nanos(part(80, 0xffff_ffff_ffff))));
    if ours == id { Ok(sequence) } else { Err(BadEvent::Foreign) }
}

fn hex(id: &str, prefix: &str) -> Option<u128> {
    let digits = id.strip_prefix(prefix)?;
    let lower = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u128::from_str_radix(digits, 16).ok().filter(|_| lower && digits.len() == 32)
}

fn tag(session: &str, sequence: u64, millis: u64) -> u64 {
    let digest = Sha256::digest(format!("{session}\n{sequence}\n{millis}"));
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first) >> (64 - TAG)
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.0 / 1_000_000).unwrap_or_default()
}

fn nanos(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or_default().saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_123_456_789);

    #[test]
    fn an_event_id_holds_its_sequence_and_is_bound_to_its_session() {
        let (ours, other) = (new(SESSION), new(SESSION));
        let (ours, other) = (ours.as_str(), other.as_str());
        let mut last = String::new();
        for at in [1, 2, 0xf_ffff, 0x10_0000, 0xffff_ffff] {
            let id = event(ours, at, NOW);
            let uuid = Uuid::parse_str(id.strip_prefix(EVENT).unwrap()).unwrap();
            assert_eq!((uuid.get_version_num(), uuid.get_variant()), (7, uuid::Variant::RFC4122));
            assert_eq!(sequence(ours, &id), Ok(at));
            assert_eq!(sequence(other, &id), Err(BadEvent::Foreign));
            assert!(id > last, "ids of one moment are in the order of their events");
            let flip = if id.ends_with('0') { "1" } else { "0" };
            let forged = format!("{}{flip}", &id[..id.len() - 1]);
            assert_eq!(sequence(ours, &forged), Err(BadEvent::Foreign));
            last = id;
        }
        for bad in ["", "event_", "xyz", &last.to_uppercase(), &last[..last.len() - 1], &format!("{last}0")] {
            assert_eq!(sequence(ours, bad), Err(BadEvent::Malformed), "{bad}");
        }
    }

    #[test]
    fn what_is_made_of_the_same_has_the_same_id() {
        assert_eq!(made_of("turn_", NOW, "a"), made_of("turn_", NOW, "a"));
        assert_ne!(made_of("turn_", NOW, "a"), made_of("turn_", NOW, "b"));
        assert_ne!(named("model_", "a"), named("agent_", "a"));
        assert!(is_session(&new(SESSION)) && !is_session(&LogId::new("run_1")));
    }
}
