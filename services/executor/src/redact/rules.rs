//! Patterns of secrets within one line.

use std::{borrow::Cow, collections::BTreeSet};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::bytes::{Regex, RegexBuilder};
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    RedactError, Settings, Span, inline, manifest, pem,
    values::{is_cookie, is_credential, is_encoded, is_password, is_present, is_token},
};

/// A built-in rule. Its first group, or all of it, is masked if it passes the check.
struct Builtin {
    name: &'static str,
    /// One of these is in every line that it matches, in any case.
    anchors: &'static [&'static str],
    pattern: &'static str,
    is_secret: fn(&[u8]) -> bool,
}

const fn rule(name: &'static str, anchors: &'static [&'static str], pattern: &'static str) -> Builtin {
    Builtin { name, anchors, pattern, is_secret: is_present }
}

/// What may stand between a key and its value, quotes included, also where they are escaped.
macro_rules! assigned {
    ($key:literal) => {
        concat!(r#"(?i)\b[\w.-]*(?:"#, $key, r#")\\*["']?\s*(?:=>|:=|=|:)\s*(?:\\*["'])?([^\s"'&;<>]+)"#)
    };
}

const BUILTIN: &[Builtin] = &[
    rule("jwt", &["eyj"], r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    rule("authorization", &["authorization"], r#"(?i)authorization\\*["']?\s*[:=]\s*(?:\\*["'])?(?:(?:bearer|basic|token|negotiate|digest|apikey)\s+)?([^\s"'\\]{6,})"#),
    Builtin { is_secret: is_credential, ..rule("bearer", &["bearer", "basic "], r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/-]{12,}=*)") },
    rule("aws", &["akia", "asia"], r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    rule("aws", &["x-amz-signature", "aws4-hmac"], r"(?i)(?:X-Amz-Signature=|AWS4-HMAC-SHA256.*Signature=)([0-9a-f]{64})"),
    rule("gcp", &["aiza", "ya29.", "gocspx-"], r"\b(?:AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})"),
    rule("azure", &["accountkey=", "sharedaccesskey=", "sig=", "q~"], r"(?i)(?:AccountKey=|SharedAccessKey=|[?&]sig=)([A-Za-z0-9+/%=_-]{20,})|\b([\w.~-]{3}[0-9]Q~[\w.~-]{30,40})"),
    rule("github", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})"),
    rule("gitlab", &["glpat-", "gldt-", "glrt-"], r"\bgl(?:pat|dt|rt)-[\w-]{20,}"),
    rule("slack", &["xoxb-", "xoxp-", "xoxa-", "xoxe", "xoxr-", "xoxs-", "xapp-", "hooks.slack.com"], r"\b(?:xox[abeprs][.-][\w.-]{10,}|xapp-[\w-]{10,})|hooks\.slack\.com/(?:services|workflows|triggers)/([\w/-]{16,})"),
    rule("stripe", &["k_live_", "k_test_", "whsec_"], r"\b(?:[sr]k_(?:live|test)_\w{10,}|whsec_\w{16,})"),
    rule("provider-key", &["sk-", "npm_", "pypi-", "hf_", "hvs.", "hvb.", "sg.", "dop_v1_", "dckr_pat_", "age-secret-key-", "glsa_", "nvapi-", "xai-", "gsk_"], r"\b(?:sk-[\w-]*[\w-]{20,}|npm_\w{36}|pypi-[\w-]{50,}|hf_[A-Za-z0-9]{30,}|hv[sb]\.[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_[0-9a-f]{64}|dckr_pat_[\w-]{20,}|AGE-SECRET-KEY-1[0-9A-Z]{50,}|glsa_\w{32,}|nvapi-[\w-]{40,}|xai-\w{40,}|gsk_\w{40,})"),
    rule("url-password", &["://"], r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'<>]*:([^\s/"']+)@"#),
    rule("private-key", &["ls0tls1crudjti"], r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURS|BQUklWQVRFIEtFWS|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVEUg|BFTkNSWVBURUQg|BEU0EgUFJJVkFURS)[A-Za-z0-9+/]*=*"),
    rule("docker-config", &["auth"], r#"\\*"auth\\*"\s*:\s*\\*"([A-Za-z0-9+/]{8,}={0,2})|\b(eyJhdXRocyI6[A-Za-z0-9+/]*=*)"#),
    rule("password-hash", &["$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$apr1$", "$argon2"], r#"\$(?:1|2[aby]|5|6|y|apr1|argon2i?d?)\$[^\s:"']{12,}"#),
    Builtin { is_secret: is_cookie, ..rule("cookie", &["cookie"], r#"(?i)\b(?:set-)?cookie\\*["']?\s*:\s*\\*["']?([^"'\r\n\\]+)"#) },
    rule("credentials-flag", &["-u", "--user", "--proxy-user"], r#"(?:\s-u|--(?:proxy-)?user)[ =]?\s*["']?[^\s:"']+:([^\s"']+)"#),
    Builtin { is_secret: is_password, ..rule("password", &["password", "passwd", "passphrase", "pwd", "pass"], assigned!("password|passwd|passphrase|pwd|[_-]pass|\\bpass|dbpass")) },
    Builtin { is_secret: is_password, ..rule("password", &["password", "passphrase"], r#"--[\w-]*(?:password|passphrase)\s+["']?([^\s"'-][^\s"']*)"#) },
    Builtin { is_secret: is_password, ..rule("password", &["login"], r"\blogin\s+\S+\s+password\s+(\S+)") },
    Builtin { is_secret: is_token, ..rule("token", &["secret", "token", "key", "credential", "auth", "session"], assigned!("secret|token|(?:api|access|secret|private|account|signing|encryption|master|client|storage)[_-]?key(?:[_-]?data)?|credentials?|auth|session[_-]?id|dockerconfigjson")) },
    Builtin { is_secret: is_token, ..rule("token", &["--token", "--secret", "key "], r#"--[\w-]*(?:token|secret|api-key|access-key|secret-key)\s+["']?([^\s"'-][^\s"']*)"#) },
    Builtin { is_secret: is_password, ..rule("variable", &["value"], r#"(?i)\\*"name\\*"\s*:\s*\\*"[^"\\]*(?:passw(?:or)?d|passphrase|pwd|_pass|secret|token|api_?key|access_?key|private_?key|credential)s?\\*"\s*,\s*\\*"value\\*"\s*:\s*\\*"([^"\\]+)"#) },
];

/// Rules that need more than a pattern. They can be switched off by name as well.
const OTHERS: &[(&str, &[&str])] = &[
    (pem::RULE, &["-----begin ", "-----end "]),
    (manifest::RULE, &["data", "kind"]),
    (VARIABLE, &["name"]),
];
/// The name of what follows a variable's name in the next line.
pub(super) const VARIABLE: &str = "variable";
const KNOWN: &str = "known";
const ENCODED: &str = "secret-data";

/// Shorter secrets would mask words.
const SHORTEST_KNOWN: usize = 8;
/// What a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

/// All rules, compiled.
#[derive(Debug)]
pub(super) struct Rules {
    /// Finds the anchors; the nth belongs to the rules at the nth place of `owners`.
    anchors: AhoCorasick,
    owners: Vec<Option<usize>>,
    patterns: Vec<Pattern>,
    /// The first that is looked for in every line.
    first_without_anchor: usize,
    known: Option<AhoCorasick>,
    encoded: Regex,
    off: BTreeSet<String>,
}

#[derive(Debug)]
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
        let known: Vec<_> = known
            .iter()
            .flat_map(|secret| secret.expose_secret().lines())
            .filter(|secret| secret.len() >= SHORTEST_KNOWN)
            .collect();
        let automaton = |texts: &[&str], builder: &mut AhoCorasickBuilder| {
            builder.build(texts).map_err(|error| RedactError::Pattern {
                name: KNOWN.to_owned(),
                reason: error.to_string(),
            })
        };
        Ok(Self {
            anchors: automaton(&anchors, AhoCorasick::builder().ascii_case_insensitive(true))?,
            owners,
            patterns,
            first_without_anchor,
            known: (!known.is_empty())
                .then(|| automaton(&known, AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest)))
                .transpose()?,
            encoded: compile(ENCODED, r"[A-Za-z0-9+/]{8,}={0,2}", false)?,
            off,
        })
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
        let mut spans: Vec<_> =
            candidates.into_iter().flat_map(|at| self.patterns[at].spans(line)).collect();
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
