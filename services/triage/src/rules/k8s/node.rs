//! Nodes that are not ready or under pressure.

use crate::{
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    quote,
    rules::Rule,
    snapshot::{Node, Snapshot},
    table,
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let lost = snapshot.nodes.iter().filter(|node| !node.is_ready);
    lost.flat_map(|node| [look::conditions(&node.object), look::pods_on(&node.object.name)]).collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let lost = snapshot.nodes.iter().filter(|node| !node.is_ready).map(|node| not_ready(snapshot, node));
    lost.chain(under_pressure(snapshot)).collect()
}

fn not_ready(snapshot: &Snapshot<'_>, node: &Node<'_>) -> Finding {
    let name = &node.object.name;
    let conditions = snapshot.evidence.shown(&look::conditions(&node.object));
    let ready = conditions.and_then(|fetched| fetched.lines().find(|line| line.starts_with("Ready=")));
    let said = ready.and_then(|line| line.split_once(": ")).map(|(_, message)| message.trim_end_matches('.'));
    let placed = snapshot.evidence.shown(&look::pods_on(name));
    let on_it = placed.map_or(0, |fetched| table::rows(&fetched.command, &fetched.output).len());
    let pods = match on_it {
        0 => String::new(),
        1 => "; one pod was placed on it".to_owned(),
        count => format!("; {count} pods were placed on it"),
    };
    let title = match said {
        Some(said) => format!("is not ready: {}{pods}", quote::plain(said)),
        None => format!("is not ready{pods}"),
    };
    let cause = if ready.is_some_and(|line| line.starts_with("Ready=Unknown")) {
        "The control plane no longer hears from the kubelet: the machine is down or cut off, or its kubelet has \
         stopped. Pods on it lose their readiness at once, and are deleted about five minutes later, but stay \
         `Terminating` until the kubelet is back or the node is deleted."
    } else {
        "The kubelet itself reports that the node is not ready; its message says why."
    };
    Finding::new(Severity::Outage, node.object.clone(), title)
        .because(cause)
        .quoting(Quote::rows([&node.row]))
        .quoting(conditions.map(|fetched| Quote::of(fetched, fetched.lines())))
        .next("See what the node last reported, and its leases and taints", format!("kubectl describe node {name}"))
        .next("On the machine itself, if it answers", "systemctl status kubelet && journalctl -u kubelet --since -30min")
        .next(
            "If the machine is gone for good, remove it, so that its pods are replaced",
            format!("kubectl delete node {name}"),
        )
}

fn under_pressure(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let Some(fetched) = snapshot.evidence.shown(&look::node_conditions()) else { return Vec::new() };
    let rows = table::rows(&fetched.command, &fetched.output);
    let findings = snapshot.nodes.iter().filter_map(|node| {
        let row = rows.iter().find(|row| row.cell("NAME") == Some(node.object.name.as_str()))?;
        let met: Vec<&str> = row.cell("MET")?.split(',').filter(|kind| *kind != "Ready").collect();
        let name = &node.object.name;
        (!met.is_empty()).then(|| {
            Finding::new(Severity::Degraded, node.object.clone(), format!("has {}", met.join(" and ")))
                .because("The kubelet evicts pods and accepts no new ones until the pressure is gone.")
                .quoting(Quote::rows([row]))
                .next("See what uses it up", format!("kubectl describe node {name}"))
        })
    });
    findings.collect()
}
