//! What is kept of a stream: its head, its tail, and how much there was in all.

use std::{collections::VecDeque, fmt};

use aws_lc_rs::digest;

/// A stream of bytes of which at most a fixed number is kept.
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
    digest: digest::Context,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("total", &self.total).finish_non_exhaustive()
    }
}

impl Capture {
    /// Keeps `limit` bytes, half of them from the end.
    pub(crate) fn new(limit: usize) -> Self {
        let digest = digest::Context::new(&digest::SHA256);
        Self { head: Vec::new(), tail: VecDeque::new(), half: limit / 2, total: 0, digest }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.digest.update(bytes);
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Bytes seen in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// SHA-256 of all bytes.
    pub(crate) fn sha256(&self) -> Vec<u8> {
        self.digest.clone().finish().as_ref().to_vec()
    }

    /// Bytes that were left out between head and tail.
    pub(crate) fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// The text: invalid UTF-8 is replaced, and a line tells of what was left out.
    pub(crate) fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.omitted() == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let tail = [front, back].concat();
        let head = &self.head[..whole_characters(&self.head)];
        let torn = tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
        let omitted = self.total - (head.len() + tail.len() - torn) as u64;
        format!(
            "{}\n[... {omitted} bytes left out ...]\n{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(&tail[torn..])
        )
    }
}

/// Length of the prefix that does not end within a UTF-8 character.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0x80..=0xBF => continue,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => 1,
        };
        return if length > back { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, chunks: &[&[u8]]) -> Capture {
        let mut capture = Capture::new(limit);
        chunks.iter().for_each(|chunk| capture.push(chunk));
        capture
    }

    #[test]
    fn keeps_all_that_fits() {
        let capture = captured(8, &[b"abc", b"", b"defgh"]);
        assert_eq!((capture.text(), capture.omitted(), capture.total()), ("abcdefgh".to_owned(), 0, 8));
    }

    #[test]
    fn keeps_head_and_tail_and_counts_the_rest() {
        let one_by_one: Vec<_> = b"0123456789abcdef".chunks(1).collect();
        for chunks in [vec![b"0123456789abcdef".as_slice()], one_by_one] {
            let capture = captured(8, &chunks);
            assert_eq!(capture.text(), "0123\n[... 8 bytes left out ...]\ncdef");
            assert_eq!((capture.omitted(), capture.total()), (8, 16));
        }
    }

    #[test]
    fn a_cut_never_tears_a_character() {
        let capture = captured(8, &["abcü…………üxyz".as_bytes()]);
        assert_eq!(capture.text(), "abc\n[... 16 bytes left out ...]\nxyz");
    }

    #[test]
    fn invalid_bytes_are_repaired_also_across_chunks() {
        assert_eq!(captured(64, &[b"a\xe2\x82", b"\xac", b"\xff!"]).text(), "a€\u{fffd}!");
    }

    #[test]
    fn whole_characters_waits_only_for_what_can_still_come() {
        for (bytes, whole) in [
            (&b"ab"[..], 2),
            (b"a\xc3", 1),
            (b"a\xe2\x82", 1),
            (b"\xf0\x9f\x98", 0),
            (b"a\x80\x80\x80", 4),
            (b"", 0),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
        }
        assert_eq!(whole_characters("a€".as_bytes()), 4);
    }
}
