//! More work than processors.

use crate::{
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    name::Object,
    rules::Rule,
    snapshot::{Snapshot, machine},
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn is_high(snapshot: &Snapshot<'_>) -> Option<([f64; 3], f64)> {
    // a short peak is no matter
    machine::load(snapshot.evidence).filter(|([one, five, _], processors)| *five > 1.5 * processors && *one > *processors)
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    is_high(snapshot).map(|_| look::host::processes("cpu")).into_iter().collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let Some(([one, five, fifteen], processors)) = is_high(snapshot) else { return Vec::new() };
    let title = format!("is overloaded: load {one}, {five}, {fifteen} with {processors} processors");
    let shown = |look| snapshot.evidence.shown(&look).map(|fetched| Quote::of(fetched, fetched.lines()));
    vec![
        Finding::new(Severity::Degraded, Object::host("load"), title)
            .because("More tasks run or wait for a disk than there are processors. The busiest processes are listed; if none is busy, they wait for a disk or network file system.")
            .quoting(shown(look::host::load()))
            .quoting(shown(look::host::processors()))
            .quoting(shown(look::host::processes("cpu")))
            .next("Tell waiting for a processor from waiting for a disk (columns r, b, wa)", "vmstat 1 5"),
    ]
}
