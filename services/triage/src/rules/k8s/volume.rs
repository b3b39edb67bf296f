//! Volumes that can not be attached or mounted.

use crate::{
    finding::Finding,
    quote,
    rules::{Rule, nothing, pod},
    snapshot::{Group, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants: nothing, check };

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let waits = pod::containers(group)
        .any(|container| matches!(container.status.waits_for(), Some("ContainerCreating" | "PodInitializing")));
    let events: Vec<_> = pod::warnings(snapshot, group)
        .into_iter()
        .filter(|event| matches!(event.reason, "FailedMount" | "FailedAttachVolume" | "FailedMapVolume"))
        .collect();
    let first = events.first().filter(|_| waits)?;
    let cause = if first.message.contains("Multi-Attach") {
        "The volume can be attached to one node at a time and is still attached to another, where a pod uses it or has not let go of it."
    } else {
        "The node can not attach or mount a volume of the pod; the message names it."
    };
    let flag = group.owner.flag();
    Some(
        pod::finding(snapshot, group, &format!("can not start: {}", quote::plain(first.message)))
            .because(cause)
            .quoting(pod::event_quote(&events))
            .next("See the pod's volumes and events", format!("kubectl describe pod {}{flag}", group.sample()?.name))
            .next("See what is attached where", "kubectl get volumeattachments"),
    )
}
