//! Masks secrets in everything that leaves the executor.
//!
//! Text is read line by line, so that the result does not depend on how it arrives: a line is shown once it is whole.
//! What belongs to several lines is known to a small machine each.
//!
//! * `builtin`, `rules`, `values`: patterns of secrets, and what such a value looks like
//! * `line`: what is masked in one line
//! * `inline`: data of a Secret in JSON on one line
//! * `manifest`: data of a Secret in YAML or JSON over many lines
//! * `pem`: private keys
//! * `stream`: from pieces to lines, for both streams of a program
//! * `file`: what the operator adds and switches off

use std::{borrow::Cow, sync::Arc};

use secrecy::SecretString;

mod builtin;
mod file;
mod inline;
mod line;
mod manifest;
mod pem;
mod rules;
mod stream;
#[cfg(test)]
mod tests;
mod values;

pub use file::RedactError;
pub(crate) use file::Settings;
pub(crate) use line::{carries_secret, names_secret};
pub(crate) use stream::Masker;

use crate::process::Source;
use rules::Rules;

/// How suspicious output is by where it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Suspicion {
    /// It should hold no secret.
    #[default]
    Usual,
    /// The command reads secrets: every encoded value is taken for one.
    ReadsSecrets,
}

/// Knows what a secret looks like.
#[derive(Clone, Debug)]
pub(crate) struct Redactor(Arc<Rules>);

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Masked {
    pub(crate) text: String,
    /// How many were masked.
    pub(crate) spans: u64,
}

impl Redactor {
    /// Masks by the operator's settings, and the `known` secrets wherever they occur.
    pub(crate) fn new(settings: Settings, known: &[SecretString]) -> Result<Self, RedactError> {
        Ok(Self(Arc::new(Rules::new(settings, known)?)))
    }

    /// Masks `more` as well.
    pub(crate) fn knowing(&self, more: &[SecretString]) -> Result<Self, RedactError> {
        if more.is_empty() { Ok(self.clone()) } else { Ok(Self(Arc::new(self.0.knowing(more)?))) }
    }

    /// Masks a whole text.
    pub(crate) fn text(&self, text: &str, suspicion: Suspicion) -> Masked {
        let mut masker = self.masker(suspicion);
        let mut shown = masker.push(Source::Stdout, text.as_bytes());
        let (rest, _) = masker.finish();
        shown.extend(rest);
        Masked { text: String::from_utf8_lossy(&shown).into_owned(), spans: masker.spans() }
    }

    /// Masks what comes in pieces from the two streams of a program.
    pub(crate) fn masker(&self, suspicion: Suspicion) -> Masker {
        Masker::new(Arc::clone(&self.0), suspicion)
    }
}

/// A part of a line that is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    /// Where begins what shows that it is a secret.
    evidence: usize,
    start: usize,
    end: usize,
    rule: Cow<'static, str>,
}

impl Span {
    fn new(start: usize, end: usize, rule: &'static str) -> Self {
        Self { evidence: start, start, end, rule: Cow::Borrowed(rule) }
    }
}

/// The line with a mark in place of each span, and how many there are. Spans that overlap become one.
fn apply(line: &[u8], mut spans: Vec<Span>, shown: &mut Vec<u8>) -> u64 {
    spans.retain(|span| span.start < span.end);
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let (mut at, mut count) = (0, 0);
    for span in spans {
        if span.start >= at {
            shown.extend_from_slice(&line[at..span.start]);
            shown.extend_from_slice(b"[masked:");
            shown.extend_from_slice(span.rule.as_bytes());
            shown.push(b']');
            count += 1;
        }
        at = at.max(span.end);
    }
    shown.extend_from_slice(&line[at..]);
    count
}
