//! All rules, compiled, and what they find within one line.

use std::{borrow::Cow, collections::BTreeSet};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::bytes::{Regex, RegexBuilder};
use secrecy::{ExposeSecret, SecretString};

use super::{
    RedactError, Settings, Span,
    builtin::BUILTIN,
    inline, manifest, pem,
    values::{is_encoded, is_present},
};

/// Rules that need more than a pattern. They can be switched off by name as well.
const OTHERS: &[(&str, &[&str])] =
    &[(pem::RULE, &["-----begin ", "-----end "]), (manifest::RULE, &["data", "kind"]), (VARIABLE, &["name"])];
/// The name of what follows a variable's name in the next line.
pub(super) const VARIABLE: &str = "variable";
const KNOWN: &str = "known";
const ENCODED: &str = "secret-data";

/// Shorter secrets would mask words.
const SHORTEST_KNOWN: usize = 8;
/// What a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

/// All rules, compiled.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Finds the anchors; the nth belongs to the rules at the nth place of `owners`.
    anchors: AhoCorasick,
    owners: Vec<Option<usize>>,
    patterns: Vec<Pattern>,
    /// The first that is looked for in every line.
    first_without_anchor: usize,
    /// Values that are masked wherever they are, and what finds them.
    secrets: Vec<SecretString>,
    known: Option<AhoCorasick>,
    encoded: Regex,
    off: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Pattern {
    name: Cow<'static, str>,
    regex: Regex,
    is_secret: fn(&[u8]) -> bool,
}

impl Rules {
    pub(super) fn new(settings: Settings, known: &[SecretString]) -> Result<Self, RedactError> {
        let names: BTreeSet<_> =
            BUILTIN.iter().map(|rule| rule.name).chain(OTHERS.iter().map(|(name, _)| *name)).collect();
        if let Some(name) = settings.disable.iter().find(|name| !names.contains(name.as_str())) {
            let known = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(RedactError::Unknown { name: name.clone(), known });
        }
        let off: BTreeSet<_> = settings.disable.into_iter().collect();
        let (mut anchors, mut owners, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        for rule in BUILTIN.iter().filter(|rule| !off.contains(rule.name)) {
            anchors.extend(rule.anchors);
            owners.extend(rule.anchors.iter().map(|_| Some(patterns.len())));
            let regex = compile(rule.name, rule.pattern, false)?;
            patterns.push(Pattern { name: rule.name.into(), regex, is_secret: rule.is_secret });
        }
        for (_, own) in OTHERS {
            anchors.extend(*own);
            owners.extend(own.iter().map(|_| None));
        }
        let first_without_anchor = patterns.len();
        for rule in settings.rules {
            let regex = compile(&rule.name, &rule.pattern, true)?;
            patterns.push(Pattern { name: mark(&rule.name).into(), regex, is_secret: is_present });
        }
        let without_known = Self {
            anchors: automaton(&anchors, AhoCorasick::builder().ascii_case_insensitive(true))?,
            owners,
            patterns,
            first_without_anchor,
            secrets: Vec::new(),
            known: None,
            encoded: compile(ENCODED, r"[A-Za-z0-9+/]{6,}={0,2}", false)?,
            off,
        };
        without_known.knowing(known)
    }

    /// The same rules, and more secrets.
    pub(super) fn knowing(&self, more: &[SecretString]) -> Result<Self, RedactError> {
        let lines = more.iter().flat_map(|secret| secret.expose_secret().lines());
        let long = lines.filter(|line| line.len() >= SHORTEST_KNOWN).map(SecretString::from);
        let secrets: Vec<_> = self.secrets.iter().cloned().chain(long).collect();
        let texts: Vec<_> = secrets.iter().map(ExposeSecret::expose_secret).collect();
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostLongest);
        let known = (!texts.is_empty()).then(|| automaton(&texts, &builder)).transpose()?;
        Ok(Self { secrets, known, ..self.clone() })
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        !self.off.contains(name)
    }

    /// The first place in a text that is, or may become, evidence of a secret.
    pub(super) fn suspect(&self, text: &[u8]) -> Option<usize> {
        if self.first_without_anchor < self.patterns.len() {
            return Some(0);
        }
        let anchor = self.anchors.find(text).map(|it| it.start());
        let known = self.known.as_ref().and_then(|known| Some(known.find(text)?.start()));
        anchor.into_iter().chain(known).min()
    }

    /// What is masked in a line, whatever is in the others.
    pub(super) fn spans(&self, line: &[u8]) -> Vec<Span> {
        let mut candidates: BTreeSet<_> =
            self.anchors.find_overlapping_iter(line).filter_map(|it| self.owners[it.pattern()]).collect();
        candidates.extend(self.first_without_anchor..self.patterns.len());
        let mut spans: Vec<_> = candidates.into_iter().flat_map(|at| self.patterns[at].spans(line)).collect();
        if let Some(known) = &self.known {
            spans.extend(known.find_iter(line).map(|it| Span::new(it.start(), it.end(), KNOWN)));
        }
        if self.is_on(manifest::RULE) {
            spans.extend(inline::spans(line));
        }
        spans
    }

    /// Every value in base64.
    pub(super) fn encoded(&self, line: &[u8]) -> impl Iterator<Item = Span> {
        let values = self.encoded.find_iter(line).filter(|it| is_encoded(it.as_bytes()));
        values.map(|it| Span::new(it.start(), it.end(), ENCODED))
    }
}

impl Pattern {
    fn spans(&self, line: &[u8]) -> impl Iterator<Item = Span> {
        self.regex.captures_iter(line).filter_map(|captures| {
            let whole = captures.get(0)?;
            let secret = captures.iter().skip(1).flatten().next().unwrap_or(whole);
            let value = trimmed(secret.as_bytes());
            (self.is_secret)(value).then(|| Span {
                evidence: whole.start(),
                start: secret.start(),
                end: secret.start() + value.len(),
                rule: self.name.clone(),
            })
        })
    }
}

/// Without what closes what the value is in.
fn trimmed(value: &[u8]) -> &[u8] {
    let ends = |byte: &u8| !matches!(byte, b',' | b')' | b']' | b'}' | b'\\');
    let is_mark = value.starts_with(b"[masked:");
    let end = if is_mark { value.len() } else { value.iter().rposition(ends).map_or(0, |last| last + 1) };
    &value[..end]
}

fn automaton(texts: &[&str], builder: &AhoCorasickBuilder) -> Result<AhoCorasick, RedactError> {
    let failed = |error: aho_corasick::BuildError| RedactError::Pattern {
        name: KNOWN.to_owned(),
        reason: error.to_string(),
    };
    builder.build(texts).map_err(failed)
}

fn compile(name: &str, pattern: &str, unicode: bool) -> Result<Regex, RedactError> {
    RegexBuilder::new(pattern)
        .unicode(unicode)
        .size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| RedactError::Pattern { name: name.to_owned(), reason: error.to_string() })
}

/// A name as it may stand in a mark.
fn mark(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
