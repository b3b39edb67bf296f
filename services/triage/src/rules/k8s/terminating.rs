//! Pods that were deleted and do not go away.

use crate::{
    finding::{Finding, Severity},
    rules::{Rule, nothing, pod},
    snapshot::{Class, Group, Snapshot},
    time::{Age, Moment},
};

pub(crate) const RULE: Rule = Rule { wants: nothing, check };

/// Longer than most programs take to stop.
const PATIENCE: Age = Age(180);

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter(|group| group.class == Class::Terminating).filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let manifest = group.manifest.as_ref()?;
    let deleted = Moment::parse(manifest.metadata.deletion_timestamp.as_deref()?)?;
    let since = deleted.before(snapshot.now?);
    if since < PATIENCE {
        return Some(Finding::new(Severity::Notice, group.owner.clone(), "").covering(group.covers()));
    }
    let pod = group.sample()?;
    let nodes = group.pods.iter().filter_map(|pod| snapshot.lost_node(pod.node.as_ref()));
    let (on, cause) = match (&pod.node, manifest.metadata.finalizers.is_empty()) {
        (Some(node), _) if snapshot.lost_node(Some(node)).is_some() => (
            format!(" on node `{node}`, which is not ready"),
            "Only the kubelet of its node can confirm that its containers have stopped, and it does not answer.".to_owned(),
        ),
        (_, false) => (
            String::new(),
            format!("It has finalizers ({}): whoever set them has not finished.", manifest.metadata.finalizers.join(", ")),
        ),
        (_, true) => (String::new(), "Its containers do not stop, or its node does not report that they did.".to_owned()),
    };
    let names: Vec<String> = group.pods.iter().map(|pod| format!("`{}`", pod.name)).collect();
    let what = format!("has pods that are stuck in Terminating for {since}{on}: {}", names.join(", "));
    Some(
        Finding::new(Severity::Degraded, group.owner.clone(), what)
            .covering(group.covers())
            .blaming(nodes.map(|node| node.object.clone()))
            .because(cause)
            .quoting(pod::row_quote(group))
            .next("See the pod", format!("kubectl describe pod {}{}", pod.name, group.owner.flag())),
    )
}
