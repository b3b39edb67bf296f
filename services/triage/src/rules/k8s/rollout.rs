//! Workloads short of replicas for a reason other than their pods: none are made.

use crate::{
    evidence::Fetched,
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    name::Kind,
    quote,
    rules::Rule,
    snapshot::{Event, Snapshot, Workload},
    time::Age,
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn short<'s, 'a>(snapshot: &'s Snapshot<'a>) -> impl Iterator<Item = &'s Workload<'a>> {
    snapshot
        .workloads
        .iter()
        .filter(|workload| workload.ready < workload.wanted && workload.age.is_none_or(|age| age > Age(60)))
        .filter(|workload| !snapshot.groups.iter().any(|group| group.owner == workload.object))
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let mut looks = Vec::new();
    for workload in short(snapshot).take(20) {
        if workload.object.kind == Kind::Deployment {
            looks.push(look::conditions(&workload.object));
        }
        if let Some((_, namespace)) = quota(&refusal(snapshot, workload)).zip(workload.object.namespace.as_ref()) {
            looks.push(look::quotas(namespace));
        }
    }
    looks
}

/// Why pods are refused: the message, and where it is.
struct Refusal<'s, 'a> {
    message: Option<&'s str>,
    conditions: Option<&'s Fetched>,
    events: Vec<&'s Event<'a>>,
}

fn refusal<'s, 'a>(snapshot: &'s Snapshot<'a>, workload: &Workload<'_>) -> Refusal<'s, 'a> {
    let object = &workload.object;
    let conditions = snapshot.evidence.shown(&look::conditions(object));
    let failure = conditions.and_then(|fetched| fetched.lines().find(|line| line.starts_with("ReplicaFailure=True")));
    let events: Vec<_> = snapshot
        .events
        .iter()
        .filter(|event| event.reason == "FailedCreate" && event.is_recent())
        .filter(|event| event.about.namespace == object.namespace)
        .filter(|event| {
            let about = event.about.name.as_str();
            let rest = about.strip_prefix(object.name.as_str());
            event.about == *object || rest.is_some_and(|rest| rest.starts_with('-') && rest.matches('-').count() == 1)
        })
        .collect();
    let told = failure.and_then(|line| line.split_once(": ")).map(|(_, message)| message);
    Refusal { message: told.or_else(|| events.first().map(|event| event.message)), conditions, events }
}

/// The quota that a refusal names.
fn quota<'s>(refusal: &Refusal<'s, '_>) -> Option<&'s str> {
    refusal.message?.split_once("exceeded quota: ")?.1.split(',').next()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    short(snapshot).map(|workload| explain(snapshot, workload)).collect()
}

fn explain(snapshot: &Snapshot<'_>, workload: &Workload<'_>) -> Finding {
    let object = &workload.object;
    let flag = object.flag();
    let refusal = refusal(snapshot, workload);
    let timed_out = refusal.conditions.is_some_and(|fetched| fetched.output.contains("ProgressDeadlineExceeded"));
    let severity = if workload.ready == 0 { Severity::Outage } else { Severity::Degraded };
    let replicas = format!("{} of {} replicas are ready", workload.ready, workload.wanted);
    let title = match refusal.message {
        Some(message) => format!("is short of replicas ({replicas}): {}", quote::plain(message)),
        None if timed_out => format!("is short of replicas ({replicas}); its rollout exceeded its progress deadline"),
        None => format!("is short of replicas: {replicas}"),
    };
    let quota = quota(&refusal);
    let cause = match (quota, refusal.message) {
        (Some(quota), _) => format!("The resource quota `{quota}` of the namespace is used up, so that the API refuses further pods."),
        (None, Some(_)) => "The API refuses to create its pods; the message says why.".to_owned(),
        (None, None) => "Its pods are missing or not ready, and nothing that I saw says why.".to_owned(),
    };
    let quotas = object.namespace.as_ref().filter(|_| quota.is_some()).and_then(|namespace| snapshot.evidence.shown(&look::quotas(namespace)));
    let nodes = snapshot.pods.iter().filter(|pod| snapshot.owner_of(&pod.namespace, &pod.name).as_ref() == Some(object));
    let nodes: Vec<_> = nodes.filter_map(|pod| snapshot.lost_node(pod.node.as_ref())).map(|node| node.object.clone()).collect();
    let finding = Finding::new(severity, object.clone(), title)
        .blaming(nodes)
        .because(cause)
        .quoting(Quote::rows([&workload.row]))
        .quoting(refusal.conditions.map(|fetched| Quote::of(fetched, fetched.lines())))
        .quoting(Quote::rows(refusal.events.iter().take(1).map(|event| &event.row)).filter(|_| refusal.conditions.is_none()))
        .quoting(quotas.map(|fetched| Quote::of(fetched, fetched.lines())))
        .next("See its events and those of its replica sets", format!("kubectl describe {} {}{flag}", object.kind.word(), object.name));
    match quota {
        Some(quota) => finding
            .next("See what uses the quota", format!("kubectl describe resourcequota {quota}{flag}"))
            .next("Then raise the quota, lower the requests, or run fewer replicas", format!("kubectl edit resourcequota {quota}{flag}")),
        None => finding,
    }
}
