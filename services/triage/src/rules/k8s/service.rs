//! Services that lead nowhere.

use crate::{
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    manifest,
    name::Name,
    rules::Rule,
    similar,
    snapshot::{Endpoints, Health, Pod, Service, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants, check };

/// Labels, as keys and values.
type Labels<'a> = Vec<(&'a str, &'a str)>;
/// A pod with its labels.
type Labelled<'s, 'a> = (&'s Pod<'a>, Labels<'a>);

/// A service without endpoints that should have some: it selects pods, and has an address of its own.
struct Dead<'s, 'a> {
    service: &'s Service<'a>,
    endpoints: &'s Endpoints<'a>,
    namespace: &'s Name,
    selector: Labels<'a>,
}

fn dead<'s, 'a>(snapshot: &'s Snapshot<'a>) -> impl Iterator<Item = Dead<'s, 'a>> {
    snapshot.empty.iter().filter_map(|endpoints| {
        let service = snapshot.services.iter().find(|service| service.object == endpoints.service)?;
        service.address?;
        let selector = labels(service.selector?);
        // a workload that was scaled to nothing is meant to have no pods
        let is_off = snapshot.workloads.iter().any(|workload| {
            workload.wanted == 0
                && workload.object.namespace == service.object.namespace
                && workload.selector.is_some_and(|own| is_within(&selector, &labels(own)))
        });
        let namespace = service.object.namespace.as_ref()?;
        (!is_off).then_some(Dead { service, endpoints, namespace, selector })
    })
}

fn labels(text: &str) -> Labels<'_> {
    text.split(',').filter_map(|pair| pair.split_once('=')).collect()
}

fn is_within(selector: &[(&str, &str)], labels: &[(&str, &str)]) -> bool {
    selector.iter().all(|pair| labels.contains(pair))
}

/// The pods of a namespace whose labels are known.
fn labelled<'s, 'a>(snapshot: &'s Snapshot<'a>, namespace: &'s Name) -> impl Iterator<Item = Labelled<'s, 'a>> {
    snapshot.pods.iter().filter(move |pod| pod.namespace == *namespace).filter_map(|pod| {
        let labels = snapshot.labels.get(&(pod.namespace.clone(), pod.name.clone()))?;
        Some((pod, self::labels(labels)))
    })
}

fn selected<'s, 'a>(snapshot: &'s Snapshot<'a>, dead: &'s Dead<'_, '_>) -> Vec<&'s Pod<'a>> {
    let all = labelled(snapshot, dead.namespace).filter(|(_, labels)| is_within(&dead.selector, labels));
    all.map(|(pod, _)| pod).filter(|pod| pod.health() != Health::Done).collect()
}

fn ready_ones<'s, 'a>(snapshot: &Snapshot<'_>, selected: &[&'s Pod<'a>]) -> Vec<&'s Pod<'a>> {
    let is_ready = |pod: &&Pod<'_>| {
        matches!(pod.health(), Health::Ready | Health::Restarted) && snapshot.lost_node(pod.node.as_ref()).is_none()
    };
    selected.iter().copied().filter(is_ready).collect()
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let mut looks = Vec::new();
    for dead in dead(snapshot).take(20) {
        looks.push(look::pod_labels(dead.namespace));
        if let Some(pod) = ready_ones(snapshot, &selected(snapshot, &dead)).first() {
            looks.push(look::yaml(&dead.service.object));
            looks.push(look::yaml(&pod.object()));
        }
    }
    looks
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    dead(snapshot).filter_map(|dead| explain(snapshot, &dead)).collect()
}

fn explain(snapshot: &Snapshot<'_>, dead: &Dead<'_, '_>) -> Option<Finding> {
    snapshot.evidence.shown(&look::pod_labels(dead.namespace))?;
    let selected = selected(snapshot, dead);
    let object = &dead.service.object;
    let rows = Quote::rows([&dead.service.row]).into_iter().chain(Quote::rows([&dead.endpoints.row]));
    if selected.is_empty() {
        return Some(selects_nothing(snapshot, dead).quoting_before(rows));
    }
    let ready = ready_ones(snapshot, &selected);
    if let Some(pod) = ready.first() {
        return wrong_port(snapshot, dead, pod).map(|finding| finding.quoting_before(rows));
    }
    let owners = selected.iter().map(|pod| snapshot.owner_of(&pod.namespace, &pod.name).unwrap_or_else(|| pod.object()));
    let nodes = selected.iter().filter_map(|pod| snapshot.lost_node(pod.node.as_ref())).map(|node| node.object.clone());
    let which = match selected.len() {
        1 => "the only pod that it selects is not ready".to_owned(),
        count => format!("none of the {count} pods that it selects is ready"),
    };
    let title = format!("has no ready endpoints: {which}");
    Some(
        Finding::new(Severity::Outage, object.clone(), title)
            .blaming(owners)
            .blaming(nodes)
            .because("Clients of the service get no connection until one of its pods is ready.")
            .quoting(rows)
            .next("See its pods", format!("kubectl get pods -n {} -l {}", dead.namespace, dead.service.selector?)),
    )
}

fn selects_nothing(snapshot: &Snapshot<'_>, dead: &Dead<'_, '_>) -> Finding {
    let object = &dead.service.object;
    let selector = dead.service.selector.unwrap_or_default();
    let title = format!("has no endpoints: its selector `{selector}` matches no pod");
    let (near, pairs) = candidates(snapshot, dead);
    let (cause, fix) = match near.first() {
        Some((_, labels)) => {
            let own: Vec<String> = dead
                .selector
                .iter()
                .filter(|pair| !labels.contains(pair))
                .filter_map(|(key, value)| {
                    let other = labels.iter().find(|(own, _)| own == key).map(|(_, value)| *value);
                    Some(format!("`{key}` is `{}` on the pods, the selector wants `{value}`", other?))
                })
                .collect();
            let said = if own.is_empty() { "they lack a label that the selector wants".to_owned() } else { own.join("; ") };
            (format!("The pods that it probably means have other labels: {said}."), Some(pairs))
        }
        None => ("No pod in the namespace has labels like these: what it is meant for was removed, renamed or never deployed here.".to_owned(), None),
    };
    let rows: Vec<_> = near.iter().filter_map(|(pod, _)| label_row(snapshot, pod)).take(4).collect();
    let finding = Finding::new(Severity::Outage, object.clone(), title).because(cause).quoting(Quote::rows(rows.iter()));
    let flag = object.flag();
    match fix {
        Some(pairs) => finding.next(
            "If these are the pods, correct the selector",
            format!("kubectl patch service {}{flag} --type=merge -p '{{\"spec\":{{\"selector\":{{{pairs}}}}}}}'", object.name),
        ),
        None => finding.next("See what runs there", format!("kubectl get pods{flag} --show-labels")),
    }
}

/// Pods that the selector nearly matches, and the labels that it should name, as JSON.
fn candidates<'s, 'a>(snapshot: &'s Snapshot<'a>, dead: &'s Dead<'_, '_>) -> (Vec<Labelled<'s, 'a>>, String) {
    let is_near = |pod: &Pod<'_>, labels: &[(&str, &str)]| {
        let name = dead.service.object.name.as_str();
        dead.selector.iter().any(|(key, value)| {
            labels.iter().any(|(own, other)| own == key && (other == value || similar::closest(value, &[other]).is_some()))
        }) || pod.name.as_str().starts_with(name)
    };
    let near: Vec<_> =
        labelled(snapshot, dead.namespace).filter(|(pod, labels)| pod.health() != Health::Done && is_near(pod, labels)).collect();
    let pairs: Vec<String> = near.first().map_or_else(Vec::new, |(_, labels)| {
        let own = dead.selector.iter().filter_map(|(key, _)| labels.iter().find(|(own, _)| own == key));
        own.map(|(key, value)| format!("\"{key}\":\"{value}\"")).collect()
    });
    (near, pairs.join(","))
}

fn label_row<'a>(snapshot: &Snapshot<'a>, pod: &Pod<'_>) -> Option<crate::table::Row<'a>> {
    let fetched = snapshot.evidence.shown(&look::pod_labels(&pod.namespace))?;
    let rows = crate::table::rows(&fetched.command, &fetched.output);
    rows.into_iter().find(|row| row.cell("NAME") == Some(pod.name.as_str()))
}

/// Ready pods without an endpoint: the service's port is named, and they have no port of that name.
fn wrong_port(snapshot: &Snapshot<'_>, dead: &Dead<'_, '_>, pod: &Pod<'_>) -> Option<Finding> {
    let object = &dead.service.object;
    let fetched = snapshot.evidence.shown(&look::yaml(object))?;
    let service = manifest::Service::read(&fetched.output)?;
    let pod_yaml = snapshot.evidence.shown(&look::yaml(&pod.object()))?;
    let manifest = manifest::Pod::read(&pod_yaml.output)?;
    let ports: Vec<_> = manifest.spec.containers.iter().flat_map(|container| &container.ports).collect();
    let wanted = service.named_ports().find(|wanted| !ports.iter().any(|port| port.name == *wanted))?;
    let known: Vec<String> = ports.iter().map(|port| format!("`{}` ({})", port.name, port.container_port)).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let title = format!("has no endpoints: its target port `{wanted}` is not a port of its pods");
    let lines = fetched.lines().filter(|line| line.contains("targetPort") || line.trim_start() == "ports:");
    let pod_lines: Vec<&str> = pod_yaml.lines().collect();
    let declared = pod_lines.iter().copied().filter(|line| {
        let line = line.trim_start().trim_start_matches("- ");
        line.starts_with("containerPort:") || ports.iter().any(|port| line == format!("name: {}", port.name))
    });
    let owner = snapshot.owner_of(&pod.namespace, &pod.name).unwrap_or_else(|| pod.object());
    let right = ports.first().map_or_else(|| "PORT".to_owned(), |port| port.name.clone());
    Some(
        Finding::new(Severity::Outage, object.clone(), title)
            .because(format!("Its pods are ready, but a port that a service gives by name counts only where a container \
                declares it. The containers of {owner} declare {known}."))
            .quoting([Quote::of(fetched, lines), Quote::of(pod_yaml, declared)])
            .next(
                "Name the port that exists (here the service's first)",
                format!("kubectl patch service {}{} --type=json -p '[{{\"op\":\"replace\",\"path\":\"/spec/ports/0/targetPort\",\"value\":\"{right}\"}}]'", object.name, object.flag()),
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_subset_of_labels() {
        assert!(is_within(&labels("app=a"), &labels("tier=b,app=a")));
        assert!(!is_within(&labels("app=a,x=y"), &labels("app=a")));
    }
}
