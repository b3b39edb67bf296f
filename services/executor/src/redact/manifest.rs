//! The data of a Kubernetes Secret in YAML or JSON over many lines.
//!
//! What kind of object it is often comes after its data, so the lines between are held back.

use super::{
    Span, apply,
    values::{is_encoded, is_mark},
};

pub(super) const RULE: &str = "secret-data";
/// What is held back at most. With more, every encoded value is masked.
const HELD_BYTES: usize = 64 << 10;
/// Objects within objects of which the kind is remembered.
const DEPTH: usize = 64;

/// What is known of the objects that are open.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    kinds: Vec<(usize, Kind)>,
    block: Option<Block>,
}

/// The kind of an object, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Secret,
    /// Its items say no kind.
    SecretList,
    Other,
}

/// Which values of a block are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    All,
    Encoded,
    None,
}

/// The data of an object.
#[derive(Debug)]
struct Block {
    indent: usize,
    /// Indentation of its entries, once one is there.
    entries: Option<usize>,
    /// Whether other members of the object came after it.
    closed: bool,
    verdict: Option<Verdict>,
    held: Vec<Held>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    line: Vec<u8>,
    spans: Vec<Span>,
    /// The value that is masked if this is a Secret.
    value: Option<Span>,
}

/// A line as far as it is understood.
pub(super) struct Shape<'a> {
    indent: usize,
    /// Indentation of the dash before it.
    dash: Option<usize>,
    key: Option<&'a [u8]>,
    value: (usize, usize),
    /// Where the text ends.
    end: usize,
}

impl Manifest {
    /// Whether the next line can matter.
    pub(super) fn is_idle(&self) -> bool {
        self.kinds.is_empty() && self.block.is_none()
    }

    /// Takes a line, and shows what is known of it and of those before it. Returns how many spans were masked.
    pub(super) fn line(&mut self, line: &[u8], spans: Vec<Span>, shown: &mut Vec<u8>) -> u64 {
        let shape = Shape::of(line);
        let text = line.trim_ascii();
        if text.is_empty() {
            return self.pass(line, spans, None, shown);
        }
        let separates = text == b"---" || text == b"...";
        let outer = if separates { 0 } else { shape.dash.map_or(shape.indent, |dash| dash + 1) };
        let mut count = 0;
        if self.block.as_ref().is_some_and(|block| separates || outer <= block.indent && shape.ends(block)) {
            count += self.resolve(Verdict::Encoded, shown);
        }
        self.kinds.retain(|(indent, _)| !separates && *indent < outer + usize::from(shape.dash.is_none()));
        let value = self.block.as_mut().and_then(|block| block.entry(&shape));
        count += self.pass(line, spans, value, shown);
        match shape.key {
            Some(b"kind") => count += self.kind(&shape, line, shown),
            Some(b"data" | b"stringData") => self.open(&shape, line),
            Some(_) | None => {}
        }
        count
    }

    /// Shows what is still held back.
    pub(super) fn finish(&mut self, shown: &mut Vec<u8>) -> u64 {
        self.resolve(Verdict::Encoded, shown)
    }

    /// A line that is shown in parts has begun. Returns whether the rest of it is masked, and how many spans were.
    pub(super) fn long(&mut self, shown: &mut Vec<u8>) -> (bool, u64) {
        match &mut self.block {
            Some(block)
                if !block.closed && block.entries.is_some() && block.verdict != Some(Verdict::None) =>
            {
                (true, block.release(Verdict::All, shown))
            }
            Some(_) | None => (false, 0),
        }
    }

    fn pass(&mut self, line: &[u8], mut spans: Vec<Span>, value: Option<Span>, shown: &mut Vec<u8>) -> u64 {
        let Some(block) = &mut self.block else { return apply(line, spans, shown) };
        if let Some(verdict) = block.verdict {
            spans.extend(value.filter(|span| verdict.masks(&line[span.start..span.end])));
            return apply(line, spans, shown);
        }
        block.bytes += line.len();
        block.held.push(Held { line: line.to_owned(), spans, value });
        if block.bytes <= HELD_BYTES {
            return 0;
        }
        block.release(Verdict::Encoded, shown)
    }

    fn kind(&mut self, shape: &Shape<'_>, line: &[u8], shown: &mut Vec<u8>) -> u64 {
        let kind = match &line[shape.value.0..shape.value.1] {
            b"Secret" => Kind::Secret,
            b"SecretList" => Kind::SecretList,
            _ => Kind::Other,
        };
        if self.kinds.len() < DEPTH {
            self.kinds.push((shape.indent, kind));
        }
        let of_block = self.block.as_ref().is_some_and(|block| block.indent == shape.indent);
        let verdict = if kind == Kind::Secret { Verdict::All } else { Verdict::None };
        if of_block { self.resolve(verdict, shown) } else { 0 }
    }

    fn open(&mut self, shape: &Shape<'_>, line: &[u8]) {
        let is_object = matches!(&line[shape.value.0..shape.value.1], b"" | b"{");
        if !is_object {
            return;
        }
        match &mut self.block {
            Some(block) if block.indent == shape.indent => {
                block.closed = false;
                block.entries = None;
            }
            Some(_) => {}
            None => {
                self.block = Some(Block {
                    indent: shape.indent,
                    entries: None,
                    closed: false,
                    verdict: self.verdict(shape.indent),
                    held: Vec::new(),
                    bytes: 0,
                });
            }
        }
    }

    /// What the kinds say that came before an object's data.
    fn verdict(&self, indent: usize) -> Option<Verdict> {
        let own = self.kinds.iter().rev().find(|(at, _)| *at == indent);
        let listed = self.kinds.iter().any(|(at, kind)| *at < indent && *kind == Kind::SecretList);
        match own {
            Some((_, Kind::Secret)) => Some(Verdict::All),
            Some(_) => Some(Verdict::None),
            None => listed.then_some(Verdict::All),
        }
    }

    fn resolve(&mut self, verdict: Verdict, shown: &mut Vec<u8>) -> u64 {
        self.block.take().map_or(0, |mut block| block.release(verdict, shown))
    }
}

impl Verdict {
    fn masks(self, value: &[u8]) -> bool {
        match self {
            Self::All => {
                !matches!(
                    value,
                    b"" | b"|" | b"|-" | b"|+" | b">" | b">-" | b">+" | b"{" | b"{}" | b"}" | b"},"
                ) && !is_mark(value)
            }
            Self::Encoded => is_encoded(value),
            Self::None => false,
        }
    }
}

impl Block {
    /// The part of a line that is a value of the data.
    fn entry(&mut self, shape: &Shape<'_>) -> Option<Span> {
        if shape.indent <= self.indent {
            self.closed = true;
        }
        if self.closed {
            return None;
        }
        let entries = *self.entries.get_or_insert(shape.indent);
        let (start, end) = if shape.indent == entries && shape.key.is_some() {
            shape.value
        } else {
            (shape.indent, shape.end)
        };
        Some(Span::new(start, end, RULE))
    }

    fn release(&mut self, verdict: Verdict, shown: &mut Vec<u8>) -> u64 {
        self.verdict = Some(self.verdict.unwrap_or(verdict));
        let mut count = 0;
        for Held { line, mut spans, value } in self.held.drain(..) {
            spans.extend(value.filter(|span| verdict.masks(&line[span.start..span.end])));
            count += apply(&line, spans, shown);
        }
        count
    }
}

impl<'a> Shape<'a> {
    pub(super) fn of(line: &'a [u8]) -> Self {
        let blank = |from: usize| line[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let first = blank(0);
        let dashed = line[first..].starts_with(b"- ");
        let indent = if dashed { first + 2 + blank(first + 2) } else { first };
        let content = line.trim_ascii_end().len().max(indent);
        let (key, rest) = key(&line[..content], indent);
        let mut value = (rest + blank(rest).min(content - rest), content);
        if key.is_some() {
            value = unquoted(line, value);
        }
        Self { indent, dash: dashed.then_some(first), key, value, end: content }
    }

    /// Whether the object that holds a block ends before this line.
    fn ends(&self, block: &Block) -> bool {
        self.indent < block.indent || self.dash.is_some()
    }

    /// Its key and the place of its value, if it is one member of an object.
    pub(super) fn member(&self) -> Option<(&'a [u8], (usize, usize))> {
        self.key.map(|key| (key, self.value))
    }
}

/// The key of a line, and what is behind its colon.
fn key(line: &[u8], from: usize) -> (Option<&[u8]>, usize) {
    let rest = &line[from..];
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
    let (key, after) = match rest {
        [b'"' | b'\'', quoted @ ..] => {
            let is_end = |at: &usize| quoted[*at] == rest[0] && (*at == 0 || quoted[*at - 1] != b'\\');
            let Some(end) = (0..quoted.len()).find(is_end) else { return (None, from) };
            (&quoted[..end], end + 2)
        }
        _ => {
            let end = rest.iter().position(|byte| !plain(byte)).unwrap_or(rest.len());
            (&rest[..end], end)
        }
    };
    match rest.get(after..) {
        Some([b':']) => (Some(key), from + after + 1),
        Some([b':', b' ' | b'\t', ..]) => (Some(key), from + after + 1),
        Some(_) | None => (None, from),
    }
}

/// Without a comma behind it and quotes around it.
fn unquoted(line: &[u8], (start, end): (usize, usize)) -> (usize, usize) {
    match &line[start..end] {
        [quote @ (b'"' | b'\''), .., b','] if line[end - 2] == *quote && end - start > 2 => {
            (start + 1, end - 2)
        }
        [quote @ (b'"' | b'\''), .., last] if last == quote => (start + 1, end - 1),
        _ => (start, end),
    }
}
