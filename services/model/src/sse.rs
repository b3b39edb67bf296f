//! Server-sent events, decoded piece by piece: bytes in, data of events out, memory bounded.
//!
//! Names of events are left out: the APIs of models repeat them in the data.

/// An event has more bytes than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Bytes in, data of events out. Pieces may end anywhere, also inside a character or a line end.
#[derive(Debug)]
pub(crate) struct Decoder {
    limit: usize,
    line: Vec<u8>,
    data: Option<String>,
    at_start: bool,
    after_cr: bool,
}

impl Decoder {
    /// A decoder of events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), data: None, at_start: true, after_cr: false }
    }

    /// The data of the events that these bytes complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.extend(bytes)?;
                break;
            };
            self.extend(&bytes[..end])?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line());
        }
        Ok(events)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held + bytes.len() > self.limit {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix('\u{feff}').unwrap_or(&line),
            false => &line,
        };
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => data.extend(["\n", value]),
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn follows_the_format() {
        let cases: &[(&str, &[&str])] = &[
            ("data: a\n\n", &["a"]),
            ("data:a\ndata: b\n\n", &["a\nb"]),
            (": comment\nid: 1\nretry: 5\nevent: e\ndata\n\n", &[""]),
            ("event: no data\n\ndata: x\r\rdata: y\r\n\r\n", &["x", "y"]),
            ("\u{feff}data:  two spaces\n\n", &[" two spaces"]),
            ("data: unfinished\n", &[]),
        ];
        for (text, events) in cases {
            assert_eq!(Decoder::new(100).push(text.as_bytes()).unwrap(), *events, "{text:?}");
        }
    }

    #[test]
    fn an_event_is_bounded_and_a_stream_is_not() {
        let mut decoder = Decoder::new(20);
        for _ in 0..100 {
            assert_eq!(decoder.push(b"data: 123456\n\n").unwrap().len(), 1);
        }
        assert_eq!(decoder.push(b"data: 123456\ndata: 123456\ndata: 12345678\n"), Err(TooLong));
        assert_eq!(Decoder::new(20).push(&[b'x'; 21]), Err(TooLong));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            events in prop::collection::vec(prop::collection::vec("[^\r\n]{0,12}", 1..4), 0..6),
            end in prop::sample::select(vec!["\n", "\r", "\r\n"]),
            sizes in prop::collection::vec(1usize..6, 1..20),
        ) {
            let line = |part: &String| format!("data: {part}{end}");
            let text: String =
                events.iter().map(|parts| parts.iter().map(line).collect::<String>() + end).collect();
            let expected: Vec<String> = events.iter().map(|parts| parts.join("\n")).collect();
            let (mut decoder, mut read, mut rest) = (Decoder::new(1000), Vec::new(), text.as_bytes());
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, left) = rest.split_at((*size).min(rest.len()));
                read.extend(decoder.push(piece).unwrap());
                rest = left;
            }
            prop_assert_eq!(read, expected);
        }
    }
}
