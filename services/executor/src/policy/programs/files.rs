//! Programs that read files or text.

use super::{
    super::{
        objection::Objection,
        options::{Except, Options},
        paths,
    },
    shown, when,
};

/// `-v 'a[$(…)]'` runs what is between the brackets.
pub(super) fn printf(arguments: &[String]) -> Result<(), Objection> {
    let first = arguments.first().map_or("", String::as_str);
    when(!first.starts_with('-') || first == "--", "options are not allowed; start with the format or `--`")
}

/// The same trap as in `printf`.
pub(super) fn test(arguments: &[String]) -> Result<(), Objection> {
    when(!arguments.iter().any(|it| it == "-v" || it == "-R"), "`-v` and `-R` are not allowed")
}

/// A module is read from wherever the program text says.
pub(super) fn jq(arguments: &[String]) -> Result<(), Objection> {
    let words = || arguments.iter().flat_map(|it| it.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    shown(!words().any(|word| matches!(word, "import" | "include")), "modules are not allowed")
}

pub(super) fn grep(arguments: &[String]) -> Result<(), Objection> {
    let given = Options {
        short: "EFGPivwxchHnoqslLrRabITuzyZU0123456789",
        short_valued: "efmABCdD",
        long: &[
            "binary",
            "byte-offset",
            "color",
            "colour",
            "count",
            "dereference-recursive",
            "extended-regexp",
            "files-with-matches",
            "files-without-match",
            "fixed-strings",
            "ignore-case",
            "initial-tab",
            "invert-match",
            "line-buffered",
            "line-number",
            "line-regexp",
            "no-filename",
            "no-messages",
            "null",
            "null-data",
            "only-matching",
            "perl-regexp",
            "quiet",
            "recursive",
            "silent",
            "text",
            "with-filename",
            "word-regexp",
        ],
        long_valued: &[
            "after-context",
            "before-context",
            "binary-files",
            "context",
            "directories",
            "exclude",
            "exclude-dir",
            "exclude-from",
            "file",
            "include",
            "label",
            "max-count",
            "regexp",
        ],
    }
    .read(arguments)?;
    let pattern_is_option = ["-e", "-f", "--regexp", "--file"].iter().any(|name| given.has(name));
    let paths = given.operands.get(usize::from(!pattern_is_option)..).unwrap_or_default();
    let recursive = ["-r", "-R", "-d", "--recursive", "--dereference-recursive", "--directories"];
    shown(
        !recursive.iter().any(|name| given.has(name))
            || (!paths.is_empty() && paths.iter().all(|path| paths::may_be_searched(path))),
        "a recursive search needs directories below /var/log, /usr or /sys",
    )
}

pub(super) fn wc(arguments: &[String]) -> Result<(), Objection> {
    Except { short: "", valued: "", long: &["files0-from"] }.check(arguments)
}

pub(super) fn du(arguments: &[String]) -> Result<(), Objection> {
    Except { short: "X", valued: "Bdt", long: &["files0-from", "exclude-from"] }.check(arguments)
}

pub(super) fn sort(arguments: &[String]) -> Result<(), Objection> {
    Options {
        short: "bdfgiMhnRrVcCmsuz",
        short_valued: "ktS",
        long: &[
            "check",
            "debug",
            "dictionary-order",
            "general-numeric-sort",
            "human-numeric-sort",
            "ignore-case",
            "ignore-leading-blanks",
            "ignore-nonprinting",
            "merge",
            "month-sort",
            "numeric-sort",
            "random-sort",
            "reverse",
            "stable",
            "unique",
            "version-sort",
            "zero-terminated",
        ],
        long_valued: &["batch-size", "buffer-size", "field-separator", "key", "parallel", "sort"],
    }
    .read(arguments)
    .map(drop)
}

pub(super) fn uniq(arguments: &[String]) -> Result<(), Objection> {
    let given = Options {
        short: "cdDiuz",
        short_valued: "fsw",
        long: &["count", "repeated", "all-repeated", "ignore-case", "unique", "zero-terminated", "group"],
        long_valued: &["skip-fields", "skip-chars", "check-chars"],
    }
    .read(arguments)?;
    when(given.operands.len() <= 1, "a second file would be written to")
}

pub(super) fn find_files(arguments: &[String]) -> Result<(), Objection> {
    const ACTS: &[&str] = &[
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-delete",
        "-fprint",
        "-fprint0",
        "-fprintf",
        "-fls",
        "-files0-from",
    ];
    match arguments.iter().find(|argument| ACTS.contains(&argument.as_str())) {
        Some(act) => Err(format!("`{act}` is not allowed").into()),
        None => Ok(()),
    }
}

pub(super) fn date(arguments: &[String]) -> Result<(), Objection> {
    let given = Options {
        short: "uIR",
        short_valued: "dr",
        long: &["utc", "universal", "iso-8601", "rfc-3339", "rfc-email"],
        long_valued: &["date", "reference"],
    }
    .read(arguments)?;
    when(
        given.operands.iter().all(|operand| operand.starts_with('+')),
        "an argument without `+` would set the clock",
    )
}

pub(super) fn getent(arguments: &[String]) -> Result<(), Objection> {
    shown(!arguments.iter().any(|it| it.contains("shadow")), "password databases are not shown")
}

pub(super) fn file(arguments: &[String]) -> Result<(), Objection> {
    Except { short: "CzZ", valued: "efFmP", long: &["compile", "uncompress", "uncompress-noreport"] }
        .check(arguments)
}
