//! Processes that the kernel killed for want of memory.

use crate::{
    finding::{Finding, Quote, Severity},
    look,
    name::Object,
    quote,
    rules::{Rule, nothing},
    snapshot::Snapshot,
};

pub(crate) const RULE: Rule = Rule { wants: nothing, check };

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let Some(fetched) = snapshot.evidence.shown(&look::host::kernel_log()) else { return Vec::new() };
    let kills: Vec<&str> = fetched.lines().filter(|line| line.to_lowercase().contains("killed process")).collect();
    let Some(last) = kills.last() else { return Vec::new() };
    let victim = last.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("a process", |(name, _)| name);
    let title = format!("had to kill {} for want of memory ({} kills in the log of its kernel)", quote::inline(victim), kills.len());
    let start = kills.len().saturating_sub(5);
    let quoted = kills.get(start..).unwrap_or_default().iter().copied();
    vec![
        Finding::new(Severity::Notice, Object::host("oom"), title)
            .because("Memory ran out on the machine or in a container's group; the time of each kill is at the start of its line.")
            .quoting([Quote::of(fetched, quoted)])
            .next("See what led to the last one", "dmesg -T | grep -B 30 -i 'killed process' | tail -n 40"),
    ]
}
