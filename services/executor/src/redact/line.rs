//! What is masked in one line, given what came before it.

use super::{
    Span, Suspicion,
    manifest::{self, Manifest},
    pem,
    rules::{Rules, VARIABLE},
    values::{is_mark, is_present},
};

/// Endings of the names of variables that hold secrets.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "_pass",
    "secret",
    "token",
    "apikey",
    "api_key",
    "accesskey",
    "access_key",
    "privatekey",
    "private_key",
    "secretkey",
    "secret_key",
    "credential",
    "credentials",
];

/// What the lines so far say of the next one.
#[derive(Debug, Default)]
pub(super) struct Lines {
    manifest: Manifest,
    /// Whether the line before was the name of a variable that holds a secret.
    named: bool,
}

impl Lines {
    /// Whether the next line is masked by itself only.
    pub(super) fn is_idle(&self) -> bool {
        self.manifest.is_idle() && !self.named
    }

    /// Everything that is known to be secret in a line, or in the beginning of a long one.
    pub(super) fn spans(
        &self,
        line: &[u8],
        rules: &Rules,
        suspicion: Suspicion,
        key: &mut Option<pem::Open>,
    ) -> Vec<Span> {
        let mut spans = rules.spans(line);
        if rules.is_on(pem::RULE) {
            spans.extend(pem::spans(line, key));
        }
        if self.named
            && let Some((b"value", (start, end))) = member(line)
            && is_present(&line[start..end])
        {
            spans.push(Span::new(start, end, VARIABLE));
        }
        match suspicion {
            Suspicion::Usual => {}
            Suspicion::ReadsSecrets => spans.extend(rules.encoded(line)),
        }
        // What was masked before is shown as it is.
        spans.retain(|span| line.get(span.start..span.end).is_some_and(|value| !is_mark(value)));
        spans
    }

    /// Shows a line, or holds it back. Returns how many spans were masked.
    pub(super) fn show(&mut self, line: &[u8], spans: Vec<Span>, rules: &Rules, shown: &mut Vec<u8>) -> u64 {
        let name = member(line).filter(|(key, _)| *key == b"name").map(|(_, (start, end))| &line[start..end]);
        self.named = rules.is_on(VARIABLE)
            && name.is_some_and(|name| std::str::from_utf8(name).is_ok_and(names_secret));
        if rules.is_on(manifest::RULE) {
            self.manifest.line(line, spans, shown)
        } else {
            super::apply(line, spans, shown)
        }
    }

    /// A line that is shown in parts has begun. Returns whether the rest of it is masked, and how many spans were.
    pub(super) fn long(&mut self, shown: &mut Vec<u8>) -> (bool, u64) {
        self.manifest.long(shown)
    }

    /// Shows what was held back.
    pub(super) fn finish(&mut self, shown: &mut Vec<u8>) -> u64 {
        self.manifest.finish(shown)
    }
}

/// Whether a variable with this name holds a secret.
pub(crate) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|ending| name.ends_with(ending))
}

/// Whether a header with this name holds a secret.
pub(crate) fn carries_secret(header: &str) -> bool {
    ["authorization", "cookie"].iter().any(|name| header.eq_ignore_ascii_case(name)) || names_secret(header)
}

/// Key and place of the value of a line that is one member of an object.
fn member(line: &[u8]) -> Option<(&[u8], (usize, usize))> {
    manifest::Shape::of(line).member()
}
