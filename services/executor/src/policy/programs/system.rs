//! Programs that show the state of the machine.

use super::{
    super::{
        objection::Objection,
        options::{Except, Options},
    },
    when,
};

/// Options with and without a dash mean different things; `e` without one shows environments.
pub(super) fn ps(arguments: &[String]) -> Result<(), Objection> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument.contains("environ") {
            return Err(Objection::sensitive("environments are not shown"));
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
                let reason = format!("its option `{argument}` is not allowed; write options with a dash");
                return Err(Objection::sensitive(reason));
            }
            false
        };
        if takes_next {
            rest.next().filter(|value| !value.contains("environ")).ok_or("an option lacks its value")?;
        }
    }
    Ok(())
}

pub(super) fn top(arguments: &[String]) -> Result<(), Objection> {
    let given = Options { short: "bcHiS1", short_valued: "ndopuUwEe", long: &[], long_valued: &[] }
        .read(arguments)?;
    when(given.has("-b") && given.operands.is_empty(), "only batch mode works, as in `top -b -n 1`")
}

pub(super) fn ss(arguments: &[String]) -> Result<(), Objection> {
    Except { short: "KDEFN", valued: "fA", long: &["kill", "diag", "events", "filter", "net"] }
        .check(arguments)
}

pub(super) fn ip(arguments: &[String]) -> Result<(), Objection> {
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

pub(super) fn hostname(arguments: &[String]) -> Result<(), Objection> {
    let given = Options {
        short: "fsiIdAyaV",
        short_valued: "",
        long: &["fqdn", "long", "short", "ip-address", "all-ip-addresses", "domain", "all-fqdns", "alias"],
        long_valued: &[],
    }
    .read(arguments)?;
    when(given.operands.is_empty(), "a name would be set")
}

pub(super) fn mount(arguments: &[String]) -> Result<(), Objection> {
    when(arguments.is_empty(), "only without arguments, to list what is mounted")
}

pub(super) fn dmesg(arguments: &[String]) -> Result<(), Objection> {
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

pub(super) fn journalctl(arguments: &[String]) -> Result<(), Objection> {
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

pub(super) fn systemctl(arguments: &[String]) -> Result<(), Objection> {
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

pub(super) fn sysctl(arguments: &[String]) -> Result<(), Objection> {
    let given = Options {
        short: "aAnNebX",
        short_valued: "r",
        long: &["all", "values", "names", "ignore", "binary", "deprecated"],
        long_valued: &["pattern"],
    }
    .read(arguments)?;
    when(!given.operands.iter().any(|it| it.contains('=')), "values cannot be set")
}
