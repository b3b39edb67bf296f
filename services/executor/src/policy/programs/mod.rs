//! The programs that only read, and what each may be told.

use super::{kubectl, objection::Objection};

mod files;
mod system;

use files::{date, du, file, find_files, getent, grep, jq, printf, sort, test, uniq, wc};
use system::{dmesg, hostname, ip, journalctl, mount, ps, ss, sysctl, systemctl, top};

/// What a program's arguments must be like. The error completes "`program`: ".
pub(super) type Check = fn(&[String]) -> Result<(), Objection>;

/// What is known of a program on the list.
#[derive(Clone, Copy)]
pub(super) struct Program {
    /// `None`: it may be told anything.
    pub(super) check: Option<Check>,
    pub(super) files: Files,
}

impl Program {
    /// Whether it may be told what matches file names: not where each argument means something else.
    pub(super) fn takes_wildcards(&self, name: &str) -> bool {
        self.check.is_none()
            || name == "printf"
            || (self.files != Files::Ignores && !matches!(name, "uniq" | "date"))
    }

    /// Whether it only reads whatever its arguments turn out to be.
    pub(super) fn ignores_arguments(&self) -> bool {
        self.check.is_none() && self.files == Files::Ignores
    }
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
    let (files, check): (_, Option<Check>) = match name {
        "echo" | "true" | "false" | ":" | "free" | "uptime" | "netstat" | "uname" | "id" | "whoami"
        | "groups" | "nproc" | "arch" | "pwd" | "lsmod" | "vmstat" | "iostat" | "mpstat" | "lscpu"
        | "seq" | "sleep" | "w" | "tr" => (Files::Ignores, None),
        "printf" => (Files::Ignores, Some(printf)),
        "ps" => (Files::Ignores, Some(ps)),
        "top" => (Files::Ignores, Some(top)),
        "ss" => (Files::Ignores, Some(ss)),
        "ip" => (Files::Ignores, Some(ip)),
        "hostname" => (Files::Ignores, Some(hostname)),
        "mount" => (Files::Ignores, Some(mount)),
        "dmesg" => (Files::Ignores, Some(dmesg)),
        "journalctl" => (Files::Ignores, Some(journalctl)),
        "systemctl" => (Files::Ignores, Some(systemctl)),
        "sysctl" => (Files::Ignores, Some(sysctl)),
        "getent" => (Files::Ignores, Some(getent)),
        "kubectl" => (Files::Ignores, Some(kubectl::check)),
        "ls" | "stat" | "df" | "lsblk" | "findmnt" | "readlink" | "realpath" | "basename" | "dirname"
        | "which" | "type" => (Files::Names, None),
        "du" => (Files::Names, Some(du)),
        "find" => (Files::Names, Some(find_files)),
        "test" | "[" => (Files::Names, Some(test)),
        "date" => (Files::Names, Some(date)),
        "cat" | "head" | "tail" | "cut" | "md5sum" | "sha1sum" | "sha256sum" | "base64" | "column"
        | "rev" | "tac" | "nl" | "cmp" | "comm" => (Files::Reads, None),
        "jq" => (Files::Reads, Some(jq)),
        "grep" | "egrep" | "fgrep" => (Files::Reads, Some(grep)),
        "sort" => (Files::Reads, Some(sort)),
        "uniq" => (Files::Reads, Some(uniq)),
        "wc" => (Files::Reads, Some(wc)),
        "file" => (Files::Reads, Some(file)),
        _ => return None,
    };
    Some(Program { check, files })
}

/// Whether HolmesGPT's list `core` has a program; what only prints or compares text counts with it.
pub(super) fn is_core(name: &str) -> bool {
    const CORE: &[&str] = &[
        "kubectl", "jq", "grep", "egrep", "fgrep", "head", "tail", "sort", "uniq", "wc", "cut", "tr", "id",
        "whoami", "hostname", "uname", "date", "which", "type", "echo", "printf", "true", "false", ":",
        "test", "[",
    ];
    CORE.contains(&name)
}

/// Objects to a change, unless it is `allowed`.
fn when(allowed: bool, otherwise: &str) -> Result<(), Objection> {
    if allowed { Ok(()) } else { Err(Objection::mutation(otherwise)) }
}

/// Objects to showing what may be secret, unless it is `allowed`.
fn shown(allowed: bool, otherwise: &str) -> Result<(), Objection> {
    if allowed { Ok(()) } else { Err(Objection::sensitive(otherwise)) }
}
