//! Finding and ending the descendants of a process.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    time::Instant,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait},
};

/// How often a tree that grows is looked at again.
const LOOKS: usize = 100;

/// Kills every process below `root`, but not `root`. They are stopped before, so that none starts another meanwhile.
pub(super) fn kill_descendants(root: Pid) {
    let mut known = HashSet::new();
    for _ in 0..LOOKS {
        let new: Vec<_> = descendants(root).into_iter().filter(|pid| known.insert(*pid)).collect();
        if new.is_empty() {
            break;
        }
        send(new, Signal::STOP);
    }
    send(known, Signal::KILL);
}

fn send(to: impl IntoIterator<Item = Pid>, signal: Signal) {
    for pid in to {
        // It may have ended since the scan.
        let _ = kill_process(pid, signal);
    }
}

/// Collects the children of this process that have ended. Tells whether any child is left.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) -> io::Result<bool> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, status),
            Ok(None) => return Ok(true),
            Err(Errno::CHILD) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills and reaps until this process, a subreaper, has no child left: orphans below it become its children,
/// so "no child" means "no descendant". `pause` waits a moment for the next child to end.
pub(super) fn end_all(
    deadline: Instant,
    mut ended: impl FnMut(Pid, WaitStatus),
    mut pause: impl FnMut(),
) -> io::Result<()> {
    while reap(&mut ended)? {
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "processes survive SIGKILL"));
        }
        kill_descendants(rustix::process::getpid());
        pause();
    }
    Ok(())
}

fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, parent) in processes() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut next = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            found.extend(Pid::from_raw(child));
            next.push(child);
        }
    }
    found
}

/// Every process with its parent. One that ends during the scan is left out.
fn processes() -> impl Iterator<Item = (i32, i32)> {
    fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((pid, parent_in(&String::from_utf8_lossy(&stat))?))
    })
}

/// The fourth field of `/proc/PID/stat`; the second, a name in parentheses, may hold anything.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_forge_its_parent() {
        assert_eq!(parent_in("12 (a) S 99 (b) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (sh) R 1 2 3"), Some(1));
        assert_eq!(parent_in("garbage"), None);
    }
}
