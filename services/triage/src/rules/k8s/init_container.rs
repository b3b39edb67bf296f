//! Init containers that fail or do not end.

use crate::{
    finding::Finding,
    look::Look,
    rules::{
        Rule, crash,
        pod::{self, Container},
    },
    snapshot::{Group, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants, check };

/// The first init container that has not succeeded, if it was started.
fn stuck<'g>(group: &'g Group<'_>) -> Option<Container<'g>> {
    let has_succeeded =
        |container: &Container<'_>| container.status.state.terminated.as_ref().is_some_and(|end| end.exit_code == 0);
    let mut containers = pod::containers(group).filter(|container| container.is_init && !container.status.ready);
    containers.find(|container| !has_succeeded(container)).filter(|container| {
        container.status.ended().is_some() || container.status.state.running.is_some()
    })
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let stuck = snapshot.groups.iter().filter_map(|group| Some((group, stuck(group)?)));
    stuck.flat_map(|(group, container)| pod::log_looks(snapshot, group, container)).collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let container = stuck(group)?;
    let name = &container.status.name;
    let what = match container.status.ended() {
        Some(end) => format!(
            "can not start: init container `{name}` fails with exit code {}{} ({} restarts)",
            end.exit_code,
            crash::last_words(snapshot, group, container),
            container.status.restart_count
        ),
        None => format!("does not start: init container `{name}` has not ended"),
    };
    let finding = pod::finding(snapshot, group, &what);
    Some(crash::explain(snapshot, group, container, finding))
}
