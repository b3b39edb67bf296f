//! How an event is stored: a version, a checksum, the event in the wire's form.

use domain::{Event, LogId};
use prost::Message as _;

use crate::Error;

/// The form of records that are written. Older ones stay readable.
const VERSION: u8 = 1;
/// Bytes before the event: the version, and a CRC-32C of the event and its place.
const HEADER: usize = 5;

/// The record of an event.
pub(crate) fn encode(log: &LogId, event: Event) -> Vec<u8> {
    let position = event.position;
    let event = wire::agent::Event::from(event);
    let mut record = Vec::with_capacity(HEADER + event.encoded_len());
    record.push(VERSION);
    record.extend([0; HEADER - 1]);
    // Only a buffer of fixed size could be too small.
    let _ = event.encode(&mut record);
    let sum = checksum(log, position, &record[HEADER..]);
    record[1..HEADER].copy_from_slice(&sum.to_le_bytes());
    record
}

/// The event of a record that was found at a place.
pub(crate) fn decode(log: &LogId, position: u64, record: &[u8]) -> Result<Event, Error> {
    let corrupt = |why: String| Error::Corrupt { log: log.clone(), position, why };
    match record.split_first_chunk::<HEADER>() {
        Some((&[VERSION, a, b, c, d], event)) => {
            if checksum(log, position, event) != u32::from_le_bytes([a, b, c, d]) {
                return Err(corrupt("its checksum is wrong".to_owned()));
            }
            let event = wire::agent::Event::decode(event).map_err(|error| corrupt(error.to_string()))?;
            Event::try_from(event).map_err(|error| corrupt(error.to_string()))
        }
        Some(([version, ..], _)) => Err(corrupt(format!("it has the unknown form {version}"))),
        None => Err(corrupt("it is cut off".to_owned())),
    }
}

/// A checksum that also tells when an intact record is at a wrong place.
fn checksum(log: &LogId, position: u64, event: &[u8]) -> u32 {
    let place = crc32c::crc32c_append(crc32c::crc32c(log.as_str().as_bytes()), &position.to_le_bytes());
    crc32c::crc32c_append(place, event)
}

#[cfg(test)]
mod tests {
    use domain::{AgentId, EventKind, RunId, Timestamp};

    use super::*;

    #[test]
    fn only_the_record_that_was_written_is_read() {
        let (log, other) = (LogId::new("l"), LogId::new("m"));
        let event = Event {
            run: RunId::new("r"),
            position: 7,
            time: Timestamp(1),
            agent: AgentId::main(),
            parent: None,
            kind: EventKind::Notice { text: "hello".into() },
        };
        let record = encode(&log, event.clone());
        assert_eq!(decode(&log, 7, &record).unwrap(), event);
        assert!(decode(&log, 8, &record).is_err());
        assert!(decode(&other, 7, &record).is_err());
        for cut in 0..record.len() {
            assert!(decode(&log, 7, &record[..cut]).is_err(), "cut at {cut}");
        }
        for bit in 0..record.len() * 8 {
            let mut flipped = record.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = decode(&log, 7, &flipped).unwrap_err();
            assert!(matches!(error, Error::Corrupt { position: 7, .. }), "bit {bit}: {error}");
        }
    }
}
