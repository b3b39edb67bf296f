//! More work than processors.

use crate::{
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    name::Object,
    rules::Rule,
    snapshot::Snapshot,
};

pub(crate) const RULE: Rule = Rule { wants, check };

/// The load averages of the last 1, 5 and 15 minutes, and the number of processors.
pub(crate) fn read(snapshot: &Snapshot<'_>) -> Option<([f64; 3], f64)> {
    let shown = |look| snapshot.evidence.shown(&look);
    let line = shown(look::host::load())?.lines().last()?;
    let (_, numbers) = line.rsplit_once("average")?;
    let numbers = numbers.trim_start_matches(['s', ':']).replace(", ", " ");
    let mut numbers = numbers.split_whitespace().filter_map(|word| word.replace(',', ".").parse().ok());
    let processors = shown(look::host::processors())?.lines().next()?.trim().parse().ok()?;
    Some(([numbers.next()?, numbers.next()?, numbers.next()?], processors))
}

fn is_high(snapshot: &Snapshot<'_>) -> Option<([f64; 3], f64)> {
    // a short peak is no matter
    read(snapshot).filter(|([one, five, _], processors)| *five > 1.5 * processors && *one > *processors)
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
