//! The programs that only read, and what each may be told.

use super::{
    kubectl,
    options::{Except, Options},
    paths,
};

/// What a program's arguments must be like. The error completes "`program`: ".
pub(super) type Check = fn(&[String]) -> Result<(), String>;

/// What is known of a program on the list.
#[derive(Clone, Copy)]
pub(super) struct Program {
    pub(super) check: Check,
    pub(super) files: Files,
}

/// What a program does with the paths among its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    /// It takes none.
    Ignores,
    /// It shows that they exist, not what they hold.
    Names,
    /// It can show what they hold.
    Reads,
}

/// Looks a program up. Only a bare name can be on the list.
pub(super) fn find(name: &str) -> Option<Program> {
    let (files, check): (_, Check) = match name {
        "echo" | "true" | "false" | ":" | "free" | "uptime" | "netstat" | "uname" | "id" | "whoami"
        | "groups" | "nproc" | "arch" | "pwd" | "lsmod" | "vmstat" | "iostat" | "mpstat" | "lscpu"
        | "seq" | "sleep" | "w" | "tr" => (Files::Ignores, any),
        "printf" => (Files::Ignores, printf),
        "ps" => (Files::Ignores, ps),
        "top" => (Files::Ignores, top),
        "ss" => (Files::Ignores, ss),
        "ip" => (Files::Ignores, ip),
        "hostname" => (Files::Ignores, hostname),
        "mount" => (Files::Ignores, mount),
        "dmesg" => (Files::Ignores, dmesg),
        "journalctl" => (Files::Ignores, journalctl),
        "systemctl" => (Files::Ignores, systemctl),
        "sysctl" => (Files::Ignores, sysctl),
        "getent" => (Files::Ignores, getent),
        "kubectl" => (Files::Ignores, kubectl::check),
        "ls" | "stat" | "df" | "lsblk" | "findmnt" | "readlink" | "realpath" | "basename" | "dirname"
        | "which" | "type" => (Files::Names, any),
        "du" => (Files::Names, du),
        "find" => (Files::Names, find_files),
        "test" | "[" => (Files::Names, test),
        "date" => (Files::Names, date),
        "cat" | "head" | "tail" | "cut" | "md5sum" | "sha1sum" | "sha256sum" | "base64" | "column"
        | "rev" | "tac" | "nl" | "cmp" | "comm" => (Files::Reads, any),
        "jq" => (Files::Reads, jq),
        "grep" | "egrep" | "fgrep" => (Files::Reads, grep),
        "sort" => (Files::Reads, sort),
        "uniq" => (Files::Reads, uniq),
        "wc" => (Files::Reads, wc),
        "file" => (Files::Reads, file),
        _ => return None,
    };
    Some(Program { check, files })
}

fn any(_: &[String]) -> Result<(), String> {
    Ok(())
}

fn when(allowed: bool, otherwise: &str) -> Result<(), String> {
    if allowed { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// `-v 'a[$(…)]'` runs what is between the brackets.
fn printf(arguments: &[String]) -> Result<(), String> {
    let first = arguments.first().map_or("", String::as_str);
    when(!first.starts_with('-') || first == "--", "options are not allowed; start with the format or `--`")
}

/// The same trap as in `printf`.
fn test(arguments: &[String]) -> Result<(), String> {
    when(!arguments.iter().any(|it| it == "-v" || it == "-R"), "`-v` and `-R` are not allowed")
}

/// A module is read from wherever the program text says.
fn jq(arguments: &[String]) -> Result<(), String> {
    let words = || arguments.iter().flat_map(|it| it.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    when(!words().any(|word| matches!(word, "import" | "include")), "modules are not allowed")
}

fn grep(arguments: &[String]) -> Result<(), String> {
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
    when(
        !recursive.iter().any(|name| given.has(name))
            || (!paths.is_empty() && paths.iter().all(|path| paths::may_be_searched(path))),
        "a recursive search needs directories below /var/log, /usr or /sys",
    )
}

fn wc(arguments: &[String]) -> Result<(), String> {
    Except { short: "", valued: "", long: &["files0-from"] }.check(arguments)
}

fn du(arguments: &[String]) -> Result<(), String> {
    Except { short: "X", valued: "Bdt", long: &["files0-from", "exclude-from"] }.check(arguments)
}

fn sort(arguments: &[String]) -> Result<(), String> {
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

fn uniq(arguments: &[String]) -> Result<(), String> {
    let given = Options {
        short: "cdDiuz",
        short_valued: "fsw",
        long: &["count", "repeated", "all-repeated", "ignore-case", "unique", "zero-terminated", "group"],
        long_valued: &["skip-fields", "skip-chars", "check-chars"],
    }
    .read(arguments)?;
    when(given.operands.len() <= 1, "a second file would be written to")
}

fn find_files(arguments: &[String]) -> Result<(), String> {
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
        Some(act) => Err(format!("`{act}` is not allowed")),
        None => Ok(()),
    }
}

/// Options with and without a dash mean different things; `e` without one shows environments.
fn ps(arguments: &[String]) -> Result<(), String> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument.contains("environ") {
            return Err("environments are not shown".to_owned());
        }
        let takes_next = if let Some(long) = argument.strip_prefix("--") {
            matches!(
                long,
                "pid"
                    | "ppid"
                    | "user"
                    | "User"
                    | "group"
                    | "Group"
                    | "format"
                    | "sort"
                    | "tty"
                    | "sid"
                    | "cols"
                    | "columns"
                    | "width"
                    | "rows"
                    | "lines"
                    | "quick-pid"
            )
        } else if let Some(cluster) = argument.strip_prefix('-') {
            match cluster.find(|c| "oOpuUCtsgGq".contains(c)) {
                Some(at) => at + 1 == cluster.len(),
                None => false,
            }
        } else {
            let numbers = argument.starts_with(|c: char| c.is_ascii_digit());
            if !numbers && !argument.chars().all(|c| "aAxufjlvswhHnTrcmLSXZ".contains(c)) {
                return Err(format!("its option `{argument}` is not allowed; write options with a dash"));
            }
            false
        };
        if takes_next {
            rest.next().filter(|value| !value.contains("environ")).ok_or("an option lacks its value")?;
        }
    }
    Ok(())
}

fn top(arguments: &[String]) -> Result<(), String> {
    let given = Options { short: "bcHiS1", short_valued: "ndopuUwEe", long: &[], long_valued: &[] }
        .read(arguments)?;
    when(given.has("-b") && given.operands.is_empty(), "only batch mode works, as in `top -b -n 1`")
}

fn ss(arguments: &[String]) -> Result<(), String> {
    Except { short: "KDEFN", valued: "fA", long: &["kill", "diag", "events", "filter", "net"] }
        .check(arguments)
}

fn ip(arguments: &[String]) -> Result<(), String> {
    const FLAGS: &[&str] = &[
        "-4", "-6", "-0", "-br", "-brief", "-s", "-stats", "-d", "-details", "-j", "-json", "-p", "-pretty",
        "-o", "-oneline", "-c", "-color", "-h", "-r",
    ];
    let words: Vec<_> = arguments.iter().map(String::as_str).skip_while(|it| FLAGS.contains(it)).collect();
    let (object, verb) = (words.first().copied().unwrap_or_default(), words.get(1).copied());
    let reads = [
        "a",
        "addr",
        "address",
        "l",
        "link",
        "r",
        "route",
        "ru",
        "rule",
        "n",
        "neigh",
        "neighbour",
        "maddr",
        "maddress",
        "tunnel",
    ];
    when(
        reads.contains(&object) && matches!(verb, None | Some("show" | "list" | "ls")),
        "only `show` of address, link, route, rule and neigh is allowed",
    )
}

fn hostname(arguments: &[String]) -> Result<(), String> {
    let given = Options {
        short: "fsiIdAyaV",
        short_valued: "",
        long: &["fqdn", "long", "short", "ip-address", "all-ip-addresses", "domain", "all-fqdns", "alias"],
        long_valued: &[],
    }
    .read(arguments)?;
    when(given.operands.is_empty(), "a name would be set")
}

fn date(arguments: &[String]) -> Result<(), String> {
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

fn mount(arguments: &[String]) -> Result<(), String> {
    when(arguments.is_empty(), "only without arguments, to list what is mounted")
}

fn dmesg(arguments: &[String]) -> Result<(), String> {
    Options {
        short: "HkLPrStTuxewWd",
        short_valued: "fls",
        long: &[
            "human",
            "kernel",
            "color",
            "nopager",
            "raw",
            "syslog",
            "notime",
            "ctime",
            "userspace",
            "decode",
            "reltime",
            "show-delta",
            "follow",
            "follow-new",
            "json",
        ],
        long_valued: &["facility", "level", "buffer-size", "time-format", "since", "until"],
    }
    .read(arguments)
    .map(drop)
}

fn journalctl(arguments: &[String]) -> Result<(), String> {
    Options {
        short: "aefklmqrxbN0123456789",
        short_valued: "cgnoptuFSTU",
        long: &[
            "all",
            "boot",
            "catalog",
            "disk-usage",
            "dmesg",
            "follow",
            "full",
            "header",
            "list-boots",
            "lines",
            "merge",
            "no-full",
            "no-hostname",
            "no-pager",
            "no-tail",
            "pager-end",
            "quiet",
            "reverse",
            "system",
            "utc",
            "output-fields",
            "case-sensitive",
        ],
        long_valued: &[
            "after-cursor",
            "cursor",
            "exclude-identifier",
            "facility",
            "field",
            "grep",
            "identifier",
            "output",
            "priority",
            "since",
            "unit",
            "until",
            "user-unit",
        ],
    }
    .read(arguments)
    .map(drop)
}

fn systemctl(arguments: &[String]) -> Result<(), String> {
    let given = Options {
        short: "alqrT",
        short_valued: "npPot",
        long: &[
            "all",
            "failed",
            "full",
            "legend",
            "no-legend",
            "no-pager",
            "plain",
            "quiet",
            "recursive",
            "reverse",
            "show-types",
            "value",
            "with-dependencies",
            "after",
            "before",
        ],
        long_valued: &["lines", "output", "property", "state", "timestamp", "type"],
    }
    .read(arguments)?;
    const VERBS: &[&str] = &[
        "cat",
        "get-default",
        "is-active",
        "is-enabled",
        "is-failed",
        "is-system-running",
        "list-automounts",
        "list-dependencies",
        "list-jobs",
        "list-paths",
        "list-sockets",
        "list-timers",
        "list-unit-files",
        "list-units",
        "show",
        "status",
    ];
    let verb = given.operands.first().map_or("list-units", String::as_str);
    when(VERBS.contains(&verb), "only status, show, cat, is-* and list-* are allowed")
}

fn sysctl(arguments: &[String]) -> Result<(), String> {
    let given = Options {
        short: "aAnNebX",
        short_valued: "r",
        long: &["all", "values", "names", "ignore", "binary", "deprecated"],
        long_valued: &["pattern"],
    }
    .read(arguments)?;
    when(!given.operands.iter().any(|it| it.contains('=')), "values cannot be set")
}

fn getent(arguments: &[String]) -> Result<(), String> {
    when(!arguments.iter().any(|it| it.contains("shadow")), "password databases are not shown")
}

fn file(arguments: &[String]) -> Result<(), String> {
    Except { short: "CzZ", valued: "efFmP", long: &["compile", "uncompress", "uncompress-noreport"] }
        .check(arguments)
}
