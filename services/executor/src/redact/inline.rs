//! The data of a Kubernetes Secret in JSON on one line, also where that JSON is text within other JSON.

use super::{Span, manifest::RULE, values::is_encoded};

/// What surrounds the strings of a JSON text: a quote, behind as many backslashes as it is nested.
#[derive(Clone, Copy)]
struct Quote(usize);

/// Bytes that are read for one line in all. One that asks for more is tangled on purpose, and its rest is masked.
const EFFORT: usize = 4 << 20;

/// Values of the members `data` and `stringData` of Secrets.
pub(super) fn spans(line: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut effort = 0;
    for member in [&b"data"[..], b"stringData"] {
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&line[from..], member).map(|at| from + at) {
            from = at + member.len();
            let Some((quote, open)) = opened(line, at, from) else { continue };
            if effort > EFFORT {
                spans.push(Span::new(open, line.len(), RULE));
                return spans;
            }
            spans.extend(values(line, quote, open, &mut effort));
        }
    }
    spans
}

/// Where the object begins that is the value of a member, if one is.
fn opened(line: &[u8], start: usize, end: usize) -> Option<(Quote, usize)> {
    let quoted = line[..start].strip_suffix(b"\"")?;
    let quote = Quote(quoted.iter().rev().take_while(|byte| **byte == b'\\').count());
    let after = quote.skip(line, end)?;
    let colon = skip_space(line, after);
    let open = skip_space(line, colon + 1);
    (line.get(colon) == Some(&b':') && line.get(open) == Some(&b'{')).then_some((quote, open))
}

fn values(line: &[u8], quote: Quote, open: usize, effort: &mut usize) -> Vec<Span> {
    let mut found = Vec::new();
    let (mut at, mut depth, mut is_value) = (open + 1, 0_usize, false);
    let mut kind = None;
    let mut inside = true;
    while at < line.len() {
        if let Some(start) = quote.skip(line, at) {
            let Some((end, after)) = quote.string(line, start) else {
                // Too long to be seen in full, and so to know what it belongs to.
                *effort += line.len() - open;
                let rest = (inside && is_value).then(|| Span::new(start, line.len(), RULE));
                return found.into_iter().chain(rest).collect();
            };
            let text = &line[start..end];
            if inside && is_value {
                found.push(Span::new(start, end, RULE));
            } else if !inside
                && depth == 0
                && text == b"kind"
                && line.get(skip_space(line, after)) == Some(&b':')
            {
                let value = skip_space(line, skip_space(line, after) + 1);
                let value = quote.skip(line, value).and_then(|it| Some(&line[it..quote.string(line, it)?.0]));
                kind = Some(value == Some(b"Secret"));
                break;
            }
            at = after;
            continue;
        }
        match line[at] {
            b':' => is_value = true,
            b',' => is_value = false,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' if inside => inside = false,
            b'}' | b']' => break,
            _ => {}
        }
        at += 1;
    }
    *effort += at - open;
    let before = || {
        // It is a search for bytes, which is quick.
        *effort += open / 16;
        quote.names_secret_before(line, open)
    };
    match kind.unwrap_or_else(before) {
        true => found,
        false if kind == Some(false) => Vec::new(),
        false => found.into_iter().filter(|span| is_encoded(&line[span.start..span.end])).collect(),
    }
}

impl Quote {
    /// Behind the quote that stands at a place.
    fn skip(self, line: &[u8], at: usize) -> Option<usize> {
        let end = at + self.0;
        let slashes = line.get(at..end)?.iter().all(|byte| *byte == b'\\');
        (slashes && line.get(end) == Some(&b'"')).then_some(end + 1)
    }

    /// Where a string ends, and what is behind its quote.
    fn string(self, line: &[u8], start: usize) -> Option<(usize, usize)> {
        let mut at = start;
        loop {
            let quote = at + memchr::memchr(b'"', line.get(at..)?)?;
            let slashes = line[start..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
            if slashes <= self.0 {
                return Some((quote - slashes, quote + 1));
            }
            at = quote + 1;
        }
    }

    /// Whether an object before a place says that it is a Secret, or a list of them.
    fn names_secret_before(self, line: &[u8], end: usize) -> bool {
        let quote = [&vec![b'\\'; self.0][..], b"\""].concat();
        let before = &line[..end];
        memchr::memmem::find_iter(before, &[&quote[..], b"kind", &quote].concat()).any(|at| {
            let colon = skip_space(line, at + 4 + 2 * quote.len());
            let value = skip_space(line, colon + 1);
            line.get(value..).is_some_and(|rest| {
                rest.strip_prefix(&quote[..]).is_some_and(|rest| rest.starts_with(b"Secret"))
            })
        })
    }
}

fn skip_space(line: &[u8], from: usize) -> usize {
    let rest = line.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}
