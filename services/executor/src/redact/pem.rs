//! Private keys between their markers, over several lines or within one.

use super::{Span, values::is_base64};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
pub(super) const RULE: &str = "private-key";

/// A private key whose end has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// Words before it in each line, such as a time stamp.
    words_before: usize,
}

/// The parts of a line that belong to private keys. `open` is the key that goes on, before and after the line.
pub(super) fn spans(line: &[u8], open: &mut Option<Open>) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    if let Some(key) = *open {
        match find(line, END, 0) {
            Some(end) => {
                spans.push(Span::new(body(&line[..end], key).unwrap_or(end), end, RULE));
                *open = None;
                at = end;
            }
            None if line.trim_ascii().is_empty() => {}
            None => match body(line, key) {
                Some(start) => spans.push(Span::new(start, content_end(line), RULE)),
                None => *open = None,
            },
        }
    }
    while let Some((begin, body)) = begin(line, at) {
        match find(line, END, body) {
            Some(end) => {
                spans.push(Span { evidence: begin, ..Span::new(body, end, RULE) });
                at = end;
            }
            None => {
                spans.push(Span { evidence: begin, ..Span::new(body, content_end(line), RULE) });
                *open = Some(Open { words_before: words(&line[..begin]).count() });
                break;
            }
        }
    }
    spans
}

/// Where a key begins in a line, and what follows the marker.
fn begin(line: &[u8], from: usize) -> Option<(usize, usize)> {
    let begin = find(line, BEGIN, from)?;
    let name = begin + BEGIN.len();
    let end = find(line, b"-----", name)?;
    let is_private = find(&line[name..end], b"PRIVATE KEY", 0).is_some();
    if is_private { Some((begin, end + 5)) } else { self::begin(line, end) }
}

/// Where the line of a key's text begins, if it is one: the last word, with as many before it as the first line had.
fn body(line: &[u8], key: Open) -> Option<usize> {
    let content = &line[..content_end(line)];
    let (start, last) = words(content).nth(key.words_before)?;
    let header = last.ends_with(b":");
    let text = last.iter().all(|byte| is_base64(*byte) || matches!(byte, b'=' | b'"' | b',' | b'\\' | b'\''));
    (header || (text && start + last.len() == content.len())).then_some(start)
}

fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let words = line.split(u8::is_ascii_whitespace).scan(0, |at, word| {
        let start = *at;
        *at += word.len() + 1;
        Some((start, word))
    });
    words.filter(|(_, word)| !word.is_empty())
}

fn content_end(line: &[u8]) -> usize {
    line.trim_ascii_end().len()
}

fn find(line: &[u8], text: &[u8], from: usize) -> Option<usize> {
    Some(from + memchr::memmem::find(line.get(from..)?, text)?)
}
