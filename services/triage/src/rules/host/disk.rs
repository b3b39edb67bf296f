//! File systems that are full, or out of inodes.

use crate::{
    evidence::Fetched,
    finding::{Finding, Quote, Severity},
    look,
    name::Object,
    rules::{Rule, nothing},
    snapshot::Snapshot,
};

pub(crate) const RULE: Rule = Rule { wants: nothing, check };

/// From here on a file system is nearly full.
const NEARLY: u32 = 90;
const FULL: u32 = 97;

/// A line of `df -P`.
struct FileSystem<'a> {
    used: u32,
    mount: &'a str,
    line: &'a str,
}

impl<'a> FileSystem<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let device = words.next()?;
        let used = words.nth(3)?.strip_suffix('%')?.parse().ok()?;
        let mount = line.get(line.rfind(" /")? + 1..)?;
        // images that are full by nature, and what has no disk of its own
        let is_image = ["/dev/loop", "squashfs", "iso9660"].iter().any(|start| device.starts_with(start))
            || ["/snap/", "/media/", "/sys/", "/proc/"].iter().any(|start| mount.starts_with(start));
        let is_memory = ["tmpfs", "devtmpfs", "udev", "shm"].contains(&device) && used < FULL;
        (!is_image && !is_memory).then_some(Self { used, mount, line })
    }
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let shown = |look| snapshot.evidence.of(&look);
    let space = shown(look::host::disks()).and_then(|fetched| full(fetched, "space"));
    let inodes = shown(look::host::inodes()).and_then(|fetched| full(fetched, "inodes"));
    space.into_iter().chain(inodes).collect()
}

fn full(fetched: &Fetched, what: &str) -> Option<Finding> {
    let mut full: Vec<_> =
        fetched.lines().filter_map(FileSystem::read).filter(|system| system.used >= NEARLY).collect();
    full.sort_by_key(|system| std::cmp::Reverse(system.used));
    let worst = full.first()?;
    let severity = if worst.used >= FULL { Severity::Outage } else { Severity::Degraded };
    let list: Vec<String> = full.iter().map(|system| format!("`{}` ({} %)", system.mount, system.used)).collect();
    let title = format!("is running out of disk {what}: {}", list.join(", "));
    let header = fetched.lines().next().into_iter();
    let is_simple = worst.mount.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.".contains(c));
    let mount = if is_simple { worst.mount } else { "/" };
    let finding = Finding::new(severity, Object::host(what), title)
        .quoting([Quote::of(fetched, header.chain(full.iter().take(6).map(|system| system.line)))]);
    Some(if what == "inodes" {
        finding
            .because("Too many files, however small: no new one can be created once the inodes are used up.")
            .next("Find the directories with the most files", format!("du --inodes -x -d 3 {mount} 2>/dev/null | sort -n | tail -n 20"))
    } else {
        finding
            .because("Programs that write there fail, often with `No space left on device`.")
            .next("Find what takes the space", format!("du -xh -d 2 {mount} 2>/dev/null | sort -h | tail -n 20"))
            .next("Look for deleted files that are still open", "lsof +L1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_file_systems_count() {
        let read = |line: &'static str| FileSystem::read(line).map(|system| (system.used, system.mount));
        assert_eq!(read("/dev/sda1 100 95 5 95% /var/lib"), Some((95, "/var/lib")));
        assert_eq!(read("/dev/loop3 100 100 0 100% /snap/core/1"), None);
        assert_eq!(read("tmpfs 100 50 50 50% /run"), None);
        assert_eq!(read("tmpfs 100 100 0 100% /run"), Some((100, "/run")));
        assert_eq!(read("Filesystem 1024-blocks Used Available Capacity Mounted on"), None);
    }
}
