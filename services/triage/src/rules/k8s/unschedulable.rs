//! Pods that no node can take.

use crate::{
    excerpt,
    finding::{Finding, Quote},
    look::{self, Look},
    manifest::Condition,
    name::{Kind, Name, Object},
    quote,
    rules::{Rule, pod},
    snapshot::{Group, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn refused<'g>(group: &'g Group<'_>) -> Option<&'g Condition> {
    group.manifest.as_ref()?.unmet("PodScheduled").filter(|condition| condition.reason == "Unschedulable")
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let asks_for_labels = |condition: &Condition| condition.message.contains("affinity") || condition.message.contains("selector");
    let refused = snapshot.groups.iter().filter_map(refused);
    refused.filter(|condition| asks_for_labels(condition)).take(1).map(|_| look::node_labels()).collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let condition = refused(group)?;
    let manifest = group.manifest.as_ref()?;
    let message = condition.message.trim_end_matches('.');
    let flag = group.owner.flag();
    let owner = pod::owner_path(group);
    let volumes = manifest.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let claims = volumes.filter_map(|claim| Some(Object::new(Kind::Claim, group.namespace()?, &Name::parse(&claim.claim_name)?)));
    let waits_for_claim = message.contains("PersistentVolumeClaim");
    let finding = pod::finding(snapshot, group, &format!("can not be scheduled: {}", quote::plain(message)))
        .blaming(claims.filter(|_| waits_for_claim))
        .quoting(pod::condition_quote(group, "PodScheduled").map(|quote| quote.and(placement_quote(group))));
    let wanted = requests(manifest);
    let mut causes = Vec::new();
    if message.contains("Insufficient") {
        causes.push(format!("No node has as much left as the pod requests{wanted}. What counts is the sum of requests, not what is really used."));
    }
    if message.contains("affinity") || message.contains("selector") {
        let selector: Vec<String> =
            manifest.spec.node_selector.iter().map(|(key, value)| format!("`{key}={value}`")).collect();
        let by = if selector.is_empty() { "its node affinity rules".to_owned() } else { format!("its node selector {}", selector.join(", ")) };
        causes.push(format!("The pod may only run on nodes that fit {by}, and none does."));
    }
    if message.contains("taint") {
        causes.push("The other nodes carry taints that the pod does not tolerate.".to_owned());
    }
    if waits_for_claim {
        causes.push("The pod waits for a claim that has no volume yet.".to_owned());
    }
    if causes.is_empty() {
        causes.push("The scheduler's message says what each node lacks.".to_owned());
    }
    let labels = snapshot.evidence.shown(&look::node_labels()).filter(|_| message.contains("affinity"));
    let finding = finding.because(causes.join(" ")).quoting(labels.map(|fetched| Quote::of(fetched, fetched.lines().take(6))));
    Some(match (waits_for_claim, message.contains("Insufficient")) {
        (true, _) => finding.next("See the claim", format!("kubectl describe pvc{flag}")),
        (false, true) => finding
            .next("See what is requested on each node", "kubectl describe nodes | grep -A 8 'Allocated resources'")
            .next("Lower the requests if they are more than it needs, or add a node", format!("kubectl edit {owner}{flag}")),
        (false, false) => finding
            .next("See the labels and taints of the nodes", "kubectl get nodes --show-labels && kubectl describe nodes | grep Taints")
            .next("Correct the rules of the workload, or label a node", format!("kubectl edit {owner}{flag}")),
    })
}

/// Where the pod wants to run, as the manifest has it.
fn placement_quote(group: &Group<'_>) -> Option<Quote> {
    let yaml = group.yaml?;
    let lines: Vec<&str> = yaml.output.lines().collect();
    let spec = excerpt::entry(&lines, "spec")?.get(1..)?;
    let parts = ["nodeSelector", "affinity"].iter().filter_map(|key| excerpt::entry(spec, key)).flatten();
    Some(Quote::of(yaml, parts.copied()))
}

fn requests(pod: &crate::manifest::Pod) -> String {
    let all = pod.spec.containers.iter().flat_map(|container| &container.resources.requests);
    let texts: Vec<String> = all.map(|(what, much)| format!("{what} {}", much.as_str().unwrap_or_default())).collect();
    if texts.is_empty() { String::new() } else { format!(" ({})", texts.join(", ")) }
}
