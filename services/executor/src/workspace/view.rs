//! How a model sees a file: some of its lines with their numbers, or a picture.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::fs::File;
use serde_json::json;

use super::Refused;

/// Bytes at the start of a file that tell whether it is text.
const LOOK: usize = 8 << 10;
/// The longest line that is shown, in characters.
const LINE: usize = 2000;
/// Bytes that are shown.
const TEXT: usize = 50 << 10;
/// The largest picture or document.
const MEDIA: u64 = 5 << 20;
/// What is shown as it is, by the end of its name.
const KINDS: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
];

/// Which lines are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first, from 0.
    pub(crate) offset: usize,
    /// How many at most.
    pub(crate) limit: usize,
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Text(String),
    /// A content part of a message, as JSON.
    Media(String),
}

/// Shows a file. The outer error is the disk's.
pub(super) fn of(path: &str, mut file: File, range: Range) -> io::Result<Result<View, Refused>> {
    if let Some(kind) = kind(path) {
        return media(path, kind, file);
    }
    let mut start = Vec::new();
    file.by_ref().take(LOOK as u64).read_to_end(&mut start)?;
    if start.contains(&0) {
        return Ok(Err(Refused::Binary(path.to_owned())));
    }
    file.rewind()?;
    Ok(Ok(View::Text(Page::read(file, range)?.show(path, range))))
}

fn kind(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    KINDS.iter().find(|(own, _)| own.eq_ignore_ascii_case(ending)).map(|(_, kind)| *kind)
}

fn media(path: &str, kind: &str, file: File) -> io::Result<Result<View, Refused>> {
    let mut bytes = Vec::new();
    file.take(MEDIA + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MEDIA {
        return Ok(Err(Refused::TooLong { path: path.to_owned(), most: MEDIA }));
    }
    let part = if kind.starts_with("image/") { "image" } else { "document" };
    let part = json!({"type": part, "mediaType": kind, "data": STANDARD.encode(bytes)});
    Ok(Ok(View::Media(part.to_string())))
}

/// Some lines of a text, and how many it has.
#[derive(Default)]
struct Page {
    lines: Vec<String>,
    bytes: usize,
    total: usize,
}

impl Page {
    fn read(file: File, range: Range) -> io::Result<Self> {
        let mut reader = BufReader::new(file);
        let mut page = Self::default();
        let mut line = Vec::new();
        while let Some(length) = next(&mut reader, &mut line)? {
            let wanted = page.total >= range.offset && page.lines.len() < range.limit;
            if wanted && page.lines.len() == page.total - range.offset && page.bytes < TEXT {
                let shown = shown(&line, length);
                page.bytes += shown.len() + 1;
                page.lines.push(shown);
            }
            page.total += 1;
        }
        if page.bytes > TEXT && page.lines.len() > 1 {
            page.lines.pop();
        }
        Ok(page)
    }

    fn show(&self, path: &str, range: Range) -> String {
        let (first, last) = (range.offset + 1, range.offset + self.lines.len());
        if self.lines.is_empty() {
            return match self.total {
                0 => format!("<file path={path:?} lines=\"0\" total=\"0\"></file>"),
                total => format!("{path} has {total} lines: there is nothing at offset {}.", range.offset),
            };
        }
        let numbered = self.lines.iter().zip(first..).map(|(line, number)| format!("{number}\t{line}\n"));
        let text: String = numbered.collect();
        let hint = match self.total - last {
            0 => String::new(),
            more => format!("\n{more} more lines: read on with offset {last}."),
        };
        format!("<file path={path:?} lines=\"{first}-{last}\" total=\"{}\">\n{text}</file>{hint}", self.total)
    }
}

/// Reads a line without its end into `line`, as much of it as can be shown. `None` at the end of the text;
/// otherwise how long the line is.
fn next(reader: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    /// A character has at most four bytes.
    const ENOUGH: usize = 4 * (LINE + 1);
    line.clear();
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        line.extend_from_slice(&piece[..piece.len().min(ENOUGH.saturating_sub(line.len()))]);
        length += piece.len();
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

fn shown(line: &[u8], length: usize) -> String {
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(LINE) {
        Some((at, _)) => format!("{}… [{length} bytes in all]", &text[..at]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use cap_std::{ambient_authority, fs::Dir};

    use super::*;

    fn view(name: &str, bytes: &[u8], range: Range) -> Result<View, Refused> {
        let folder = tempfile::tempdir().unwrap();
        let directory = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        directory.write(name, bytes).unwrap();
        of(name, directory.open(name).unwrap(), range).unwrap()
    }

    fn text(bytes: &[u8], offset: usize, limit: usize) -> String {
        match view("a.txt", bytes, Range { offset, limit }).unwrap() {
            View::Text(text) => text,
            View::Media(part) => panic!("{part}"),
        }
    }

    #[test]
    fn lines_have_their_numbers() {
        for (bytes, offset, limit, shown) in [
            ("a\nb\nc", 0, 10, "<file path=\"a.txt\" lines=\"1-3\" total=\"3\">\n1\ta\n2\tb\n3\tc\n</file>"),
            (
                "a\n\nc\n",
                1,
                1,
                "<file path=\"a.txt\" lines=\"2-2\" total=\"3\">\n2\t\n</file>\n1 more lines: read on with offset 2.",
            ),
            ("", 0, 10, "<file path=\"a.txt\" lines=\"0\" total=\"0\"></file>"),
            ("a\n", 5, 10, "a.txt has 1 lines: there is nothing at offset 5."),
        ] {
            assert_eq!(text(bytes.as_bytes(), offset, limit), shown, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_cut_where_a_character_ends() {
        let long = text("ü".repeat(1 << 20).as_bytes(), 0, 1);
        assert!(long.contains(&format!("{}… [{} bytes in all]", "ü".repeat(LINE), 2 << 20)));
        let many = text("0123456789\n".repeat(10_000).as_bytes(), 0, 10_000);
        assert!(many.len() < 2 * TEXT && many.contains("read on with offset"), "{}", many.len());
    }

    #[test]
    fn pictures_are_shown_and_other_bytes_refused() {
        let all = Range { offset: 0, limit: 10 };
        let Ok(View::Media(part)) = view("a.PNG", b"\x89PNG\0", all) else { panic!("no picture") };
        let part: serde_json::Value = serde_json::from_str(&part).unwrap();
        assert_eq!(part, json!({"type": "image", "mediaType": "image/png", "data": "iVBORwA="}));
        assert!(matches!(view("a.bin", b"a\0b", all), Err(Refused::Binary(_))));
        let large = vec![0; usize::try_from(MEDIA).unwrap() + 1];
        assert!(matches!(view("a.pdf", &large, all), Err(Refused::TooLong { .. })));
    }
}
