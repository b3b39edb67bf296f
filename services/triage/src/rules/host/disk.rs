//! File systems that are full, or out of inodes.

use crate::{
    evidence::Fetched,
    finding::{Finding, Quote, Severity},
    look,
    name::Object,
    rules::{Rule, nothing},
    snapshot::{Snapshot, machine},
};

pub(crate) const RULE: Rule = Rule { wants: nothing, check };

/// From here on a file system is nearly full.
const NEARLY: u32 = 90;
const FULL: u32 = 97;

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let shown = |look| snapshot.evidence.of(&look);
    let space = shown(look::host::disks()).and_then(|fetched| full(fetched, "space"));
    let inodes = shown(look::host::inodes()).and_then(|fetched| full(fetched, "inodes"));
    space.into_iter().chain(inodes).collect()
}

fn full(fetched: &Fetched, what: &str) -> Option<Finding> {
    let all = machine::file_systems(fetched);
    let full: Vec<_> = all.iter().filter(|system| system.used >= NEARLY).collect();
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
