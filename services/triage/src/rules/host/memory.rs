//! Too little memory.

use crate::{
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    name::Object,
    rules::Rule,
    snapshot::{Snapshot, machine},
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn is_short(snapshot: &Snapshot<'_>) -> Option<(u64, u64)> {
    machine::memory(snapshot.evidence).filter(|(total, available)| available * 10 < *total)
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    is_short(snapshot).map(|_| look::host::processes("mem")).into_iter().collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let Some((total, available)) = is_short(snapshot) else { return Vec::new() };
    let severity = if available * 20 < total { Severity::Outage } else { Severity::Degraded };
    let title = format!("is short of memory: {available} MiB of {total} MiB are available");
    let shown = |look| snapshot.evidence.shown(&look).map(|fetched| Quote::of(fetched, fetched.lines()));
    vec![
        Finding::new(severity, Object::host("memory"), title)
            .because("The machine swaps or drops its caches, which makes it slow, and may kill processes. The largest are listed.")
            .quoting(shown(look::host::memory()))
            .quoting(shown(look::host::processes("mem")))
            .next("Watch the largest processes", "top -o %MEM"),
    ]
}
