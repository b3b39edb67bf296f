//! Files that hold secrets, by where they are and what they are called.
//!
//! This catches what is asked for by name. A boundary is what the sandbox makes of it.

use std::path::PathBuf;

use super::{objection::Objection, script::Word};

/// Directories that may be searched as a whole, and matched with wildcards.
const SEARCHABLE: &[&[&str]] = &[&["var", "log"], &["usr"], &["sys"]];
/// Parts of a path that make everything below secret.
const SECRET_FOLDERS: &[&str] =
    &[".ssh", ".kube", ".aws", ".azure", ".gnupg", ".docker", ".gcloud", "gcloud", "secrets", "private"];
/// Places below which everything is secret.
const SECRET_PLACES: &[&[&str]] = &[
    &["etc", "kubernetes"],
    &["var", "lib", "kubelet"],
    &["etc", "rancher"],
    &["var", "lib", "rancher"],
    &["var", "lib", "etcd"],
];
const SECRET_NAMES: &[&str] = &[
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "kubeconfig",
    "credentials",
    "token",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".dockercfg",
    ".dockerconfigjson",
    ".htpasswd",
    ".env",
    ".bash_history",
];
const SECRET_ENDINGS: &[&str] =
    &[".pem", ".key", ".p12", ".pfx", ".jks", ".ppk", ".kdbx", ".kubeconfig", "_history"];
/// What may be read of `/proc/PID`, for any process.
const PROC_FILES: &[&str] = &[
    "status",
    "stat",
    "statm",
    "cmdline",
    "comm",
    "limits",
    "io",
    "cgroup",
    "mountinfo",
    "mounts",
    "net",
    "oom_score",
    "oom_score_adj",
    "wchan",
    "sched",
    "schedstat",
    "loginuid",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty"];

/// Whether a program may read what a word names. The error completes "`program`: ".
pub(super) fn check(word: &Word, kubeconfigs: &[PathBuf]) -> Result<(), Objection> {
    let text = word.text();
    if word
        .before_glob()
        .is_some_and(|before| text.contains('/') && !(may_be_searched(&before) && may_be_searched(&text)))
    {
        let reason = format!("wildcards in `{text}` are allowed only below /var/log, /usr and /sys");
        return Err(Objection::sensitive(reason));
    }
    if candidates(&text).any(|path| is_secret(&path, kubeconfigs)) {
        return Err(Objection::sensitive(format!("`{text}` may hold secrets")));
    }
    Ok(())
}

/// Whether everything below a path may be read.
pub(super) fn may_be_searched(path: &str) -> bool {
    let parts = parts(path);
    !path.contains("..")
        && path.starts_with('/')
        && SEARCHABLE
            .iter()
            .any(|root| parts.len() >= root.len() && parts.iter().zip(*root).all(|(own, root)| own == root))
}

/// What of an argument may be a path: all of it, and what an option has attached.
fn candidates(text: &str) -> impl Iterator<Item = String> {
    let whole = (!text.starts_with('-')).then_some(text);
    let value = text.split_once('=').map(|(_, value)| value);
    let attached = text.starts_with('-').then(|| text.find(['/', '~']).map(|at| &text[at..])).flatten();
    [whole, value, attached].into_iter().flatten().filter(|text| text.contains(['/', '~'])).map(str::to_owned)
}

/// The parts of a path from the root, where programs run, without `.` and `..`.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

fn is_secret(path: &str, kubeconfigs: &[PathBuf]) -> bool {
    let parts = parts(path);
    let name = parts.last().copied().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let known = format!("/{}", parts.join("/"));
    kubeconfigs.iter().any(|own| own.as_os_str() == known.as_str())
        || parts.iter().any(|part| SECRET_FOLDERS.contains(part))
        || SECRET_PLACES.iter().any(|place| parts.starts_with(place))
        || SECRET_NAMES.contains(&lower.as_str())
        || SECRET_ENDINGS.iter().any(|ending| lower.ends_with(ending))
        || (lower.starts_with("id_") && !lower.ends_with(".pub"))
        || matches!(parts.as_slice(), ["dev", device, ..] if !DEVICES.contains(device))
        || is_secret_of_process(&parts)
}

fn is_secret_of_process(parts: &[&str]) -> bool {
    let ["proc", process, rest @ ..] = parts else { return false };
    let is_process =
        process.bytes().all(|byte| byte.is_ascii_digit()) || matches!(*process, "self" | "thread-self");
    match rest {
        _ if *process == "kcore" => true,
        [] => false,
        [file, ..] => is_process && !PROC_FILES.contains(file),
    }
}
