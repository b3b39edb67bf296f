//! Reads a log: the lines worth quoting, and what they say about the cause.

/// Lines that are quoted from a log.
const QUOTED: usize = 12;

/// What a log says about why a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clue<'a> {
    pub(crate) kind: ClueKind,
    pub(crate) line: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClueKind {
    /// It could not reach something over the network.
    Unreachable,
    /// A setting is missing or wrong.
    Setting,
    /// It was not let in.
    Authentication,
    /// The file system or the kernel refused it.
    Permission,
    MissingFile,
    AddressInUse,
    OutOfMemory,
    DiskFull,
    /// It says that it failed, in words that fit nothing above.
    Failure,
}

const SIGNS: [(ClueKind, &[&str]); 9] = [
    (
        ClueKind::Setting,
        &[
            "environment variable",
            "env var",
            "is not set",
            "is required",
            "must be set",
            "not configured",
            "missing required",
            "keyerror",
            "invalid configuration",
            "missing configuration",
            "unknown flag",
            "invalid value",
        ],
    ),
    (
        ClueKind::Authentication,
        &[
            "authentication failed",
            "access denied",
            "invalid credentials",
            "invalid password",
            "password authentication",
            "unauthorized",
            "permission denied for",
            "login failed",
        ],
    ),
    (
        ClueKind::Unreachable,
        &[
            "connection refused",
            "no such host",
            "could not resolve",
            "name or service not known",
            "temporary failure in name resolution",
            "connection timed out",
            "i/o timeout",
            "no route to host",
            "network is unreachable",
            "could not connect",
            "failed to connect",
            "can't connect",
            "cannot connect",
            "econnrefused",
            "enotfound",
            "etimedout",
            "connection reset",
            "unable to connect",
        ],
    ),
    (ClueKind::AddressInUse, &["address already in use", "eaddrinuse"]),
    (ClueKind::DiskFull, &["no space left on device", "enospc"]),
    (
        ClueKind::OutOfMemory,
        &["out of memory", "outofmemoryerror", "cannot allocate memory", "heap out of memory"],
    ),
    (
        ClueKind::Permission,
        &["permission denied", "operation not permitted", "eacces", "read-only file system"],
    ),
    (
        ClueKind::MissingFile,
        &[
            "no such file or directory",
            "filenotfound",
            "enoent",
            "cannot find module",
            "modulenotfounderror",
            "command not found",
            "exec format error",
        ],
    ),
    (
        ClueKind::Failure,
        &["panic", "fatal", "exception", "traceback", "segmentation fault", "error", "failed", "abort"],
    ),
];

/// The last line that tells most about a failure.
pub(crate) fn clue<'a>(lines: &[&'a str]) -> Option<Clue<'a>> {
    SIGNS.iter().find_map(|(kind, signs)| {
        let says = |line: &&&str| {
            let lower = line.to_lowercase();
            signs.iter().any(|sign| lower.contains(sign))
        };
        // of several failures at the end, the first is the cause of the others
        let found = if *kind == ClueKind::Failure {
            lines.iter().skip(lines.len().saturating_sub(QUOTED)).find(says)
        } else {
            lines.iter().rev().find(says)
        };
        found.map(|line| Clue { kind: *kind, line })
    })
}

/// The lines to quote: the end, and the clue if it comes before that.
pub(crate) fn excerpt<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let end = lines.len().saturating_sub(QUOTED);
    let tail = lines.get(end..).unwrap_or_default();
    let clue = clue(lines).filter(|clue| !tail.iter().any(|line| std::ptr::eq(*line, clue.line)));
    match clue {
        Some(clue) => [clue.line, "…"].into_iter().chain(tail.iter().copied()).collect(),
        None => tail.to_vec(),
    }
}

/// A line without its time and level.
pub(crate) fn message(line: &str) -> &str {
    let is_head = |word: &str| {
        let bare = word.trim_matches(|c: char| "[]():|".contains(c));
        let has_time = bare.starts_with(|c: char| c.is_ascii_digit()) && bare.contains([':', '-', '/']);
        let is_level = [
            "UTC", "LOG", "TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "ERR", "FATAL", "CRITICAL",
            "PANIC",
        ]
        .iter()
        .any(|level| bare.eq_ignore_ascii_case(level));
        has_time || is_level || (word.starts_with('[') && bare.chars().all(|c| c.is_ascii_digit()))
    };
    let mut rest = line.trim();
    while let Some((_, more)) = rest.split_once(' ').filter(|(word, _)| is_head(word)) {
        rest = more.trim_start();
    }
    rest
}

/// Words of a line that may be hosts, without their ports.
pub(crate) fn hosts(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':')))
        .map(|word| word.trim_matches([':', '.', '-']))
        .map(|word| word.split(':').next().unwrap_or(word))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_from_what_follows_it() {
        let lines = ["starting", "dial tcp: lookup orders-db: connection refused", "fatal: giving up", "bye"];
        let found = clue(&lines).expect("a clue");
        assert_eq!((found.kind, found.line), (ClueKind::Unreachable, lines[1]));
        assert!(hosts("connect to orders-db:5432: refused").any(|host| host == "orders-db"));
        assert_eq!(clue(&["all is well"]), None);
    }

    #[test]
    fn times_and_levels_are_left_out() {
        for line in [
            "2026-11-22T00:25:01.074Z FATAL no key",
            "[2026/11/22 00:25:01] [error] no key",
            "00:25:01 UTC [1] LOG:  no key",
        ] {
            assert_eq!(message(line), "no key");
        }
    }

    #[test]
    fn an_early_clue_is_kept() {
        let mut lines = vec!["KeyError: 'TAX'"];
        lines.extend(["at frame"; 40]);
        assert_eq!(excerpt(&lines).first(), Some(&"KeyError: 'TAX'"));
        assert_eq!(excerpt(&lines).len(), QUOTED + 2);
    }
}
