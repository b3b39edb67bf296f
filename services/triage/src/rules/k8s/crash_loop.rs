//! Containers that end again and again.

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

fn crashed<'g>(snapshot: &Snapshot<'_>, group: &'g Group<'_>) -> Option<Container<'g>> {
    let mut containers = pod::containers(group).filter(|container| !container.is_init);
    containers.find(|container| {
        let ended_lately = container.status.ended().is_some_and(|end| pod::is_recent(snapshot, end));
        container.status.waits_for() == Some("CrashLoopBackOff")
            || container.status.state.terminated.as_ref().is_some_and(|end| end.exit_code != 0)
            || (ended_lately && container.status.restart_count >= 2)
    })
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let crashed = snapshot.groups.iter().filter_map(|group| Some((group, crashed(snapshot, group)?)));
    crashed.flat_map(|(group, container)| pod::log_looks(snapshot, group, container)).collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let container = crashed(snapshot, group)?;
    let status = container.status;
    let code = status.ended().map_or_else(String::new, |end| format!(" with exit code {}", end.exit_code));
    let said = crash::last_words(snapshot, group, container);
    let what = match status.restart_count {
        0 => format!("has failed: container `{}` ended{code}{said}", status.name),
        count => format!("is crash looping: container `{}` ends{code}{said} ({count} restarts)", status.name),
    };
    Some(crash::explain(snapshot, group, container, pod::finding(snapshot, group, &what)))
}
