//! What never runs, whatever is allowed otherwise: root, and what the operator denies.

use super::{guard::Refusal, rules::Rules};

/// Programs that run what their arguments say.
const RUNNERS: &[&str] = &[
    "bash", "builtin", "chroot", "command", "dash", "doas", "env", "eval", "exec", "find", "flock", "ionice",
    "ksh", "nice", "nohup", "nsenter", "parallel", "script", "setsid", "sh", "ssh", "stdbuf", "strace",
    "time", "timeout", "trap", "unshare", "watch", "xargs", "zsh",
];

/// Why a command is blocked, if it is. One that is not known to only read is searched for root in all its words.
pub(super) fn command(rules: &Rules, words: &[String], only_reads: bool) -> Option<String> {
    let program = words.first()?;
    let base = program.rsplit('/').next().unwrap_or_default();
    let root = if only_reads { root_in(program) } else { words.iter().find_map(|word| root_in(word)) };
    let inner: Vec<_> = match RUNNERS.contains(&base) {
        true => words.iter().skip(1).flat_map(|word| tokens(word)).collect(),
        false => Vec::new(),
    };
    root.map(by_root).or_else(|| denied(rules, words)).or_else(|| denied_within(rules, &inner))
}

/// Why a text that may not have been understood is blocked for naming root, if it is.
pub(super) fn text(text: &str) -> Option<String> {
    root_in(text).or_else(|| root_in(&unquoted(text))).map(by_root)
}

/// Why a text that was not understood at all is blocked by the operator, if it is.
pub(super) fn unread(rules: &Rules, text: &str) -> Option<String> {
    [text.to_owned(), unquoted(text)].iter().find_map(|text| denied_within(rules, &tokens(text)))
}

/// The denial of what nobody can be asked about.
pub(super) fn by_guard(refusal: &Refusal) -> String {
    format!("refused: {refusal} Split it into smaller commands.")
}

fn by_root(program: &str) -> String {
    format!("Command blocked: `{program}` never runs on this server, whatever is allowed otherwise.")
}

fn denied(rules: &Rules, words: &[String]) -> Option<String> {
    let rule = rules.deny.iter().find(|rule| rule.forbids(words))?;
    Some(format!("Command blocked by configuration: `{}` never runs on this server.", rule.words().join(" ")))
}

fn denied_within(rules: &Rules, words: &[String]) -> Option<String> {
    (0..words.len()).find_map(|start| denied(rules, &words[start..]))
}

fn root_in(text: &str) -> Option<&'static str> {
    let words = || text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
    ["sudo", "su"].into_iter().find(|name| words().any(|word| word.eq_ignore_ascii_case(name)))
}

fn unquoted(text: &str) -> String {
    text.replace(['\'', '"', '\\'], "")
}

fn tokens(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || ";|&(){}<>`$'\"".contains(c);
    text.split(ends).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
