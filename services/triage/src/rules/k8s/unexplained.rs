//! Failing pods that no other rule explains: what the cluster says of them.

use crate::{
    finding::Finding,
    quote,
    rules::{Rule, nothing, pod},
    snapshot::{Class, Group, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants: nothing, check };

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let sample = group.sample()?;
    // it was restarted some time, and runs
    if sample.status == "Running" && sample.ready == sample.containers {
        return None;
    }
    let warnings = pod::warnings(snapshot, group);
    let said = warnings.first().map(|event| quote::plain(event.message));
    let what = match &said {
        Some(said) => format!("is in state `{}`: {said}", sample.status),
        None => format!("is in state `{}`", sample.status),
    };
    let cause = match (&said, group.class) {
        (Some(_), _) => "The newest warning about it is quoted above.",
        (None, Class::Terminating) => "It was deleted and its containers have not been reported as stopped.",
        (None, _) => "Nothing that I could read says why; its description may.",
    };
    let nodes = group.pods.iter().filter_map(|pod| snapshot.lost_node(pod.node.as_ref()));
    Some(
        pod::finding(snapshot, group, &what)
            .blaming(nodes.map(|node| node.object.clone()))
            .because(cause)
            .quoting(pod::row_quote(group))
            .quoting(pod::event_quote(&warnings))
            .next("See everything about it", format!("kubectl describe pod {}{}", sample.name, group.owner.flag())),
    )
}
