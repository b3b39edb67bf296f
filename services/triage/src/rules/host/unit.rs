//! System services that failed.

use crate::{
    evidence::Fetched,
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    name::{Name, Object},
    rules::Rule,
    snapshot::Snapshot,
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn failed(snapshot: &Snapshot<'_>) -> Vec<Name> {
    let fetched = snapshot.evidence.shown(&look::host::failed_units());
    let lines = fetched.into_iter().flat_map(Fetched::lines).filter(|line| line.contains(" failed "));
    lines.filter_map(|line| line.split_whitespace().find_map(Name::parse)).collect()
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    failed(snapshot).iter().take(5).map(look::host::unit).collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let findings = failed(snapshot).into_iter().map(|unit| {
        // its exit code says that the unit is not active, not that the command failed
        let status = snapshot.evidence.of(&look::host::unit(&unit)).filter(|fetched| !fetched.output.is_empty());
        let list = snapshot.evidence.shown(&look::host::failed_units());
        let line = list.map(|fetched| Quote::of(fetched, fetched.lines().filter(|line| line.contains(unit.as_str()))));
        Finding::new(Severity::Degraded, Object::host(unit.as_str()), format!("has a failed unit, `{unit}`"))
            .because("Its own log says why, as far as it is quoted.")
            .quoting(line)
            .quoting(status.map(|fetched| Quote::of(fetched, fetched.lines())))
            .next("Read its log", format!("journalctl -u {unit} -n 100 --no-pager"))
            .next("Once the cause is gone", format!("systemctl restart {unit}"))
    });
    findings.collect()
}
