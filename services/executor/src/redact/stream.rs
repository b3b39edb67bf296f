//! From pieces of two streams to whole lines without secrets.

use std::{mem, ops::Range, sync::Arc};

use super::{Span, Suspicion, line::Lines, pem, rules::Rules};
use crate::process::{Source, whole_characters};

/// A line that is longer is masked in parts.
const LONGEST: usize = 64 << 10;
/// What is kept back of a part without evidence: evidence may begin in it.
const MARGIN: usize = 1 << 10;

/// Masks what a program prints. What it shows depends on the bytes and not on their pieces.
#[derive(Debug)]
pub(crate) struct Masker {
    rules: Arc<Rules>,
    suspicion: Suspicion,
    stdout: Stream,
    stderr: Stream,
    /// A private key that is being printed, on either stream.
    key: Option<pem::Open>,
    spans: u64,
}

/// One stream between its lines.
#[derive(Debug, Default)]
struct Stream {
    /// The beginning of a line.
    pending: Vec<u8>,
    lines: Lines,
    /// A secret that was longer than what is looked at goes on.
    swallows: bool,
    /// The pending text is not the beginning of its line.
    continues: bool,
}

impl Masker {
    pub(super) fn new(rules: Arc<Rules>, suspicion: Suspicion) -> Self {
        let (stdout, stderr) = (Stream::default(), Stream::default());
        Self { rules, suspicion, stdout, stderr, key: None, spans: 0 }
    }

    /// How many secrets were masked.
    pub(crate) fn spans(&self) -> u64 {
        self.spans
    }

    /// Takes the next bytes of a stream and returns what can be shown of it.
    pub(crate) fn push(&mut self, source: Source, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        let mut stream = mem::take(self.stream(source));
        stream.pending.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(length) = self.step(&mut stream, at, &mut shown) {
            at += length;
        }
        stream.pending.drain(..at);
        *self.stream(source) = stream;
        shown
    }

    /// Both streams have ended: what is left of them.
    pub(crate) fn finish(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (stdout, stderr) = (mem::take(&mut self.stdout), mem::take(&mut self.stderr));
        let (mut first, mut second) = self.across(&stdout.pending, &stderr.pending);
        let (back, front) = self.across(&stderr.pending, &stdout.pending);
        first.extend(front);
        second.extend(back);
        (self.end(stdout, first), self.end(stderr, second))
    }

    fn stream(&mut self, source: Source) -> &mut Stream {
        match source {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
        }
    }

    /// Shows one line, or many that are harmless, or a part of one. Returns its length, unless more must come first.
    fn step(&mut self, stream: &mut Stream, at: usize, shown: &mut Vec<u8>) -> Option<usize> {
        let rest = stream.pending.get(at..)?;
        if stream.swallows {
            let end = rest.iter().position(|byte| ends_secret(*byte));
            stream.swallows = end.is_none();
            return end.or_else(|| (!rest.is_empty()).then_some(rest.len()));
        }
        let Some(end) = memchr::memchr(b'\n', &rest[..rest.len().min(LONGEST)]).map(|at| at + 1) else {
            return (rest.len() >= LONGEST).then(|| self.part(stream, at, shown));
        };
        if !stream.continues && self.is_idle(stream) {
            let lines = harmless_lines(&self.rules, rest);
            if lines > 0 {
                shown.extend_from_slice(&rest[..lines]);
                return Some(lines);
            }
        }
        let spans = stream.lines.spans(&rest[..end], &self.rules, self.suspicion, &mut self.key);
        self.show(stream, at..at + end, spans, shown);
        stream.continues = false;
        Some(end)
    }

    /// Shows a part of a line that is too long to be looked at as a whole, so that no secret is cut.
    fn part(&mut self, stream: &mut Stream, at: usize, shown: &mut Vec<u8>) -> usize {
        let rest = &stream.pending[at..];
        let window = &rest[..whole_characters(&rest[..LONGEST])];
        if stream.continues && self.is_idle(stream) && self.rules.suspect(window).is_none() {
            let cut = whole_characters(&window[..LONGEST - MARGIN]);
            shown.extend_from_slice(&window[..cut]);
            return cut;
        }
        let mut spans = stream.lines.spans(window, &self.rules, self.suspicion, &mut self.key.clone());
        let mut cut = whole_characters(&window[..LONGEST / 2]);
        while let Some(span) = spans.iter().find(|span| span.evidence < cut && cut < span.end) {
            cut = span.end;
        }
        stream.swallows = cut == window.len();
        spans.retain(|span| span.end <= cut);
        self.show(stream, at..at + cut, spans, shown);
        if !mem::replace(&mut stream.continues, true) {
            let (masked, count) = stream.lines.long(shown);
            stream.swallows |= masked;
            self.spans += count;
        }
        cut
    }

    /// Whether only a line's own text can make it a secret.
    fn is_idle(&self, stream: &Stream) -> bool {
        stream.lines.is_idle() && self.key.is_none() && self.suspicion == Suspicion::Usual
    }

    fn show(&mut self, stream: &mut Stream, at: Range<usize>, spans: Vec<Span>, shown: &mut Vec<u8>) {
        let line = &stream.pending[at];
        self.spans += match stream.continues {
            true => super::apply(line, spans, shown),
            false => stream.lines.show(line, spans, &self.rules, shown),
        };
    }

    /// What is secret only where one text follows the other.
    fn across(&self, first: &[u8], second: &[u8]) -> (Vec<Span>, Vec<Span>) {
        if first.is_empty() || second.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let border = first.len();
        let spans = self.rules.spans(&[first, second].concat());
        let crossing = spans.into_iter().filter(|span| span.start < border && border < span.end);
        crossing
            .map(|span| {
                let front = Span { end: border, ..span.clone() };
                (front, Span { evidence: 0, start: 0, end: span.end - border, rule: span.rule })
            })
            .unzip()
    }

    fn end(&mut self, mut stream: Stream, across: Vec<Span>) -> Vec<u8> {
        let mut shown = Vec::new();
        if !stream.pending.is_empty() {
            let mut spans = stream.lines.spans(&stream.pending, &self.rules, self.suspicion, &mut self.key);
            spans.extend(across);
            let whole = 0..stream.pending.len();
            self.show(&mut stream, whole, spans, &mut shown);
        }
        self.spans += stream.lines.finish(&mut shown);
        shown
    }
}

/// Length of the whole lines at the beginning that hold no secret, nor the beginning of one.
fn harmless_lines(rules: &Rules, text: &[u8]) -> usize {
    let lines = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
    match rules.suspect(&text[..lines]) {
        None => lines,
        Some(at) => memchr::memrchr(b'\n', &text[..at]).map_or(0, |at| at + 1),
    }
}

fn ends_secret(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b',' | b';' | b'}' | b']')
}
