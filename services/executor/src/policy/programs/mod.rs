//! The programs that only read, and what each may be told.

use super::kubectl;

mod files;
mod system;

use files::{date, du, file, find_files, getent, grep, jq, printf, sort, test, uniq, wc};
use system::{dmesg, hostname, ip, journalctl, mount, ps, ss, sysctl, systemctl, top};

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
