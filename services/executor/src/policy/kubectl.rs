//! kubectl: what each verb and option does to the cluster, and the kinds that are not shown unasked.

use super::{
    Effect,
    objection::Objection,
    options::{Given, Options},
    script::{Simple, Word},
};

/// Options that come before or after any verb.
const SHORT_VALUED: &str = "n";
const LONG: &[&str] = &["help", "match-server-version", "warnings-as-errors"];
const LONG_VALUED: &[&str] = &["namespace", "context", "request-timeout"];

/// The verbs that may run. The second word of those that have one is in [`second_word`].
const VERBS: &[(&str, Options<'static>)] = &[
    ("get", GET),
    (
        "describe",
        Options {
            short: "AR",
            short_valued: "l",
            long: &["all-namespaces", "show-events"],
            long_valued: &["selector", "chunk-size"],
        },
    ),
    ("logs", LOGS),
    (
        "top",
        Options {
            short: "A",
            short_valued: "l",
            long: &[
                "all-namespaces",
                "containers",
                "no-headers",
                "sum",
                "use-protocol-buffers",
                "show-capacity",
                "show-swap",
            ],
            long_valued: &["selector", "sort-by", "field-selector"],
        },
    ),
    (
        "events",
        Options {
            short: "Aw",
            short_valued: "o",
            long: &["all-namespaces", "watch", "no-headers"],
            long_valued: &["for", "types", "output", "chunk-size"],
        },
    ),
    (
        "explain",
        Options {
            short: "",
            short_valued: "o",
            long: &["recursive"],
            long_valued: &["api-version", "output"],
        },
    ),
    (
        "api-resources",
        Options {
            short: "",
            short_valued: "o",
            long: &["cached", "namespaced", "no-headers"],
            long_valued: &["api-group", "categories", "output", "sort-by", "verbs"],
        },
    ),
    ("api-versions", NONE),
    (
        "version",
        Options { short: "", short_valued: "o", long: &["client", "short"], long_valued: &["output"] },
    ),
    ("cluster-info", NONE),
    (
        "config",
        Options { short: "", short_valued: "o", long: &["minify", "no-headers"], long_valued: &["output"] },
    ),
    (
        "auth",
        Options {
            short: "Aq",
            short_valued: "o",
            long: &["all-namespaces", "list", "quiet", "no-headers"],
            long_valued: &["subresource", "output"],
        },
    ),
    (
        "rollout",
        Options {
            short: "w",
            short_valued: "ol",
            long: &["watch"],
            long_valued: &["revision", "timeout", "selector", "output"],
        },
    ),
];

const NONE: Options<'static> = Options { short: "", short_valued: "", long: &[], long_valued: &[] };
const GET: Options<'static> = Options {
    short: "Aw",
    short_valued: "loL",
    long: &[
        "all-namespaces",
        "watch",
        "watch-only",
        "output-watch-events",
        "no-headers",
        "show-labels",
        "show-kind",
        "show-managed-fields",
        "ignore-not-found",
        "server-print",
        "allow-missing-template-keys",
    ],
    long_valued: &[
        "selector",
        "output",
        "label-columns",
        "field-selector",
        "sort-by",
        "chunk-size",
        "subresource",
    ],
};
const LOGS: Options<'static> = Options {
    short: "fp",
    short_valued: "cl",
    long: &["follow", "previous", "all-containers", "all-pods", "prefix", "timestamps", "ignore-errors"],
    long_valued: &[
        "container",
        "selector",
        "since",
        "since-time",
        "tail",
        "limit-bytes",
        "max-log-requests",
        "pod-running-timeout",
    ],
};

const ALLOWED: &str = "only get, describe, logs, top, events, explain, api-resources, api-versions, version, cluster-info, config view, auth can-i and rollout status or history are allowed";

/// Verbs that change nothing and still need a person.
const UNLISTED: &[(&str, Effect, Options<'static>)] = &[
    (
        "wait",
        Effect::Read,
        Options {
            short: "A",
            short_valued: "lo",
            long: &["all", "all-namespaces"],
            long_valued: &["for", "timeout", "selector", "field-selector", "output"],
        },
    ),
    (
        "diff",
        Effect::SensitiveRead,
        Options {
            short: "R",
            short_valued: "fkl",
            long: &["recursive", "server-side"],
            long_valued: &["filename", "kustomize", "selector"],
        },
    ),
    ("options", Effect::Read, NONE),
];

/// Options that read with other credentials, from elsewhere, or print what is otherwise hidden.
const SENSITIVE: Options<'static> = Options {
    short: "",
    short_valued: "sv",
    long: &["insecure-skip-tls-verify"],
    long_valued: &[
        "as",
        "as-group",
        "as-uid",
        "certificate-authority",
        "client-certificate",
        "client-key",
        "cluster",
        "kubeconfig",
        "password",
        "server",
        "template",
        "tls-server-name",
        "token",
        "user",
        "username",
        "v",
    ],
};

/// Whether a command names the cluster that it goes to: then what a person allows for the current one says nothing.
pub(super) fn chooses_its_cluster(command: &Simple) -> bool {
    const LONG: [&str; 5] = ["--context", "--cluster", "--server", "--kubeconfig", "--user"];
    let mut own = command.arguments.iter().map(Word::text).take_while(|word| word != "--");
    // `-s` is the server, also behind other letters.
    let chooses = |word: String| match word.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => LONG.iter().any(|name| word.starts_with(name)),
        Some(letters) => letters.contains('s'),
        None => false,
    };
    command.program == "kubectl" && own.any(chooses)
}

/// Judges kubectl's arguments.
pub(super) fn check(arguments: &[String]) -> Result<(), Objection> {
    judge(arguments, None).map_err(|first| match judge(arguments, Some(&SENSITIVE)) {
        Err(again) if again == first => first,
        Err(again) => Objection { effect: again.effect.max(Effect::SensitiveRead), ..first },
        Ok(()) => Objection::sensitive(first.reason),
    })
}

/// Judges with some more options than are allowed: an objection that stays is not about one of them.
fn judge(arguments: &[String], more: Option<&Options<'_>>) -> Result<(), Objection> {
    let at = verb_index(arguments, more)?;
    let verb = &arguments[at];
    let refused = || format!("`{verb}` is not allowed; {ALLOWED}");
    if let Some((_, effect, own)) = UNLISTED.iter().find(|(name, ..)| name == verb) {
        read(verb, own, arguments, more)?;
        return Err(Objection { effect: *effect, reason: refused() });
    }
    let (name, own) = VERBS.iter().find(|(name, _)| name == verb).ok_or_else(refused)?;
    let given = read(verb, own, arguments, more)?;
    let operands = given.operands.get(1..).unwrap_or_default();
    second_word(name, arguments.get(at + 1), operands)?;
    if matches!(*name, "get" | "describe") {
        kinds(operands).map_err(Objection::sensitive)?;
    }
    outputs(&given).map_err(Objection::sensitive)
}

/// Where the verb is. Before it, kubectl takes the word after an option that it does not know yet for its value,
/// so that only options with a known value may stand there.
fn verb_index(arguments: &[String], more: Option<&Options<'_>>) -> Result<usize, Objection> {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        if !argument.starts_with('-') {
            return Ok(at);
        }
        let name = argument.split('=').next().unwrap_or_default();
        let known = |long: &str| {
            LONG_VALUED.contains(&long) || more.is_some_and(|more| more.long_valued.contains(&long))
        };
        if name != "-n" && !name.strip_prefix("--").is_some_and(known) {
            return Err(format!("the option `{argument}` belongs after the verb").into());
        }
        at += if argument.contains('=') { 1 } else { 2 };
    }
    Err(Objection::read(format!("a verb is missing; {ALLOWED}")))
}

/// Reads arguments with a verb's options, the common ones and some more.
fn read(
    verb: &str,
    own: &Options<'_>,
    arguments: &[String],
    more: Option<&Options<'_>>,
) -> Result<Given, Objection> {
    let more = more.unwrap_or(&NONE);
    // `config view --raw` takes no value, `get --raw PATH` does.
    let (raw, raw_valued): (&[&str], &[&str]) = match verb {
        _ if more.long.is_empty() => (&[], &[]),
        "config" => (&["raw"], &[]),
        _ => (&[], &["raw"]),
    };
    Options {
        short: &format!("{}h", own.short),
        short_valued: &format!("{}{SHORT_VALUED}{}", own.short_valued, more.short_valued),
        long: &[own.long, LONG, more.long, raw].concat(),
        long_valued: &[own.long_valued, LONG_VALUED, more.long_valued, raw_valued].concat(),
    }
    .read(arguments)
}

/// Judges the second word of verbs that have one. It must follow at once, for the reason given above.
fn second_word(verb: &str, next: Option<&String>, operands: &[String]) -> Result<(), Objection> {
    let allowed: &[&str] = match verb {
        "config" => &["view", "current-context", "get-contexts", "get-clusters"],
        "auth" => &["can-i", "whoami"],
        "rollout" => &["status", "history"],
        "top" => &["pod", "pods", "po", "node", "nodes", "no"],
        "cluster-info" if operands.is_empty() => return Ok(()),
        "cluster-info" => {
            let reason = format!("only `cluster-info` alone is allowed; {ALLOWED}");
            return Err(Objection::sensitive(reason));
        }
        _ => return Ok(()),
    };
    match next {
        Some(word) if allowed.contains(&word.as_str()) => Ok(()),
        Some(word) => Err(format!("`{verb} {word}` is not allowed; {ALLOWED}").into()),
        None => Err(Objection::read(format!("`{verb}` needs one of: {}", allowed.join(", ")))),
    }
}

/// Refuses kinds whose content is secret: in the list of kinds, and before the slash of each name.
fn kinds(operands: &[String]) -> Result<(), String> {
    let first = operands.first().into_iter().flat_map(|first| first.split(','));
    let named = operands.iter().flat_map(|operand| operand.split(',')).filter(|part| part.contains('/'));
    for part in first.chain(named) {
        check_kind(part.split('/').next().unwrap_or_default())?;
    }
    Ok(())
}

/// Refuses one kind, in any of its spellings: `Secret`, `secrets`, `secrets.v1.`.
pub(crate) fn check_kind(kind: &str) -> Result<(), String> {
    let name = kind.split('.').next().unwrap_or_default().to_ascii_lowercase();
    if matches!(name.as_str(), "secret" | "secrets") {
        return Err(
            "Secrets are not shown; whether one exists can be seen in the events and status of what uses it"
                .to_owned(),
        );
    }
    Ok(())
}

fn outputs(given: &Given) -> Result<(), String> {
    let formats = given.options.iter().filter(|(name, _)| matches!(name.as_str(), "-o" | "--output"));
    for format in formats.filter_map(|(_, value)| value.as_deref()) {
        let kind = format.split('=').next().unwrap_or_default();
        const FORMATS: &[&str] = &[
            "wide",
            "yaml",
            "json",
            "name",
            "jsonpath",
            "jsonpath-as-json",
            "go-template",
            "template",
            "custom-columns",
            "plaintext",
            "plaintext-openapiv2",
            "kyaml",
            "",
        ];
        if !FORMATS.contains(&kind) {
            return Err(format!("the output format `{kind}` is not allowed"));
        }
    }
    Ok(())
}
