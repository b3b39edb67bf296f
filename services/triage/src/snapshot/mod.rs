//! What is known of the cluster: the evidence, typed.

mod events;
mod group;
pub(crate) mod machine;
mod objects;
mod pods;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    evidence::Evidence,
    look::{self, Look, Scope},
    name::{Kind, Name, Object},
    time::Moment,
};

pub(crate) use events::Event;
pub(crate) use group::{Class, Group};
pub(crate) use objects::{Claim, Endpoints, Job, Node, Service, Workload};
pub(crate) use pods::{Health, Pod};

/// What is known of the cluster.
#[derive(Debug)]
pub(crate) struct Snapshot<'a> {
    pub(crate) evidence: &'a Evidence,
    /// When it was taken, if anything tells.
    pub(crate) now: Option<Moment>,
    pub(crate) pods: Vec<Pod<'a>>,
    pub(crate) workloads: Vec<Workload<'a>>,
    pub(crate) jobs: Vec<Job<'a>>,
    pub(crate) claims: Vec<Claim<'a>>,
    pub(crate) services: Vec<Service<'a>>,
    /// Endpoints without a ready address.
    pub(crate) empty: Vec<Endpoints<'a>>,
    pub(crate) nodes: Vec<Node<'a>>,
    /// Warnings, the newest first.
    pub(crate) events: Vec<Event<'a>>,
    /// Pods that need an explanation.
    pub(crate) groups: Vec<Group<'a>>,
    /// The labels of pods, where they were looked at.
    pub(crate) labels: BTreeMap<(Name, Name), &'a str>,
}

impl<'a> Snapshot<'a> {
    /// Reads the evidence; what is outside of `scope` is nobody's question.
    pub(crate) fn new(evidence: &'a Evidence, now: Option<Moment>, scope: &Scope) -> Self {
        let rows = evidence.rows("kubectl get pods");
        let labels = rows.iter().filter_map(|row| Some((pods::key(row)?, row.cell("LABELS")?))).collect();
        let mut seen = BTreeSet::new();
        let mut pods: Vec<Pod<'a>> = rows.into_iter().filter_map(Pod::read).collect();
        // a row with its node says more than one without
        pods.sort_by_key(|pod| pod.node.is_none());
        pods.retain(|pod| seen.insert((pod.namespace.clone(), pod.name.clone())));
        pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let mut workloads = once(
            evidence.rows("kubectl get deployments").into_iter().filter_map(Workload::read),
            |workload| workload.object.clone(),
        );
        let mut jobs = once(evidence.rows("kubectl get jobs").into_iter().filter_map(Job::read), |job| {
            job.object.clone()
        });
        let mut events: Vec<Event<'a>> =
            evidence.rows("kubectl get events").into_iter().filter_map(Event::read).collect();
        events.sort_by(|a, b| (a.age, &a.about, a.row.line).cmp(&(b.age, &b.about, b.row.line)));
        let is_within = |object: &Object| match (scope, &object.namespace) {
            (Scope::Cluster, _) | (_, None) => true,
            (Scope::Namespace(name), Some(own)) => name == own,
        };
        pods.retain(|pod| is_within(&pod.object()));
        workloads.retain(|workload| is_within(&workload.object));
        jobs.retain(|job| is_within(&job.object));
        events.retain(|event| is_within(&event.about));
        let mut snapshot = Self {
            evidence,
            now,
            claims: objects::claims(evidence).into_iter().filter(|claim| is_within(&claim.object)).collect(),
            services: objects::services(evidence)
                .into_iter()
                .filter(|service| is_within(&service.object))
                .collect(),
            empty: objects::empty_endpoints(evidence)
                .into_iter()
                .filter(|empty| is_within(&empty.service))
                .collect(),
            nodes: objects::nodes(evidence),
            groups: Vec::new(),
            pods,
            workloads,
            jobs,
            events,
            labels,
        };
        snapshot.groups = group::form(&snapshot);
        snapshot
    }

    /// The workload or job whose pods are named like this one.
    pub(crate) fn owner_of(&self, namespace: &Name, pod: &Name) -> Option<Object> {
        let workloads = self.workloads.iter().map(|workload| &workload.object);
        let owners = workloads.chain(self.jobs.iter().map(|job| &job.object));
        owners
            .filter(|owner| owner.namespace.as_ref() == Some(namespace) && pods::is_named_after(pod, owner))
            .max_by_key(|owner| owner.name.as_str().len())
            .cloned()
    }

    /// Recent warnings about an object.
    pub(crate) fn warnings<'s>(&'s self, object: &'s Object) -> impl Iterator<Item = &'s Event<'a>> {
        self.events.iter().filter(move |event| event.about == *object && event.is_recent())
    }

    /// The node of this name, if it is not ready.
    pub(crate) fn lost_node(&self, name: Option<&Name>) -> Option<&Node<'a>> {
        self.nodes.iter().find(|node| Some(&node.object.name) == name && !node.is_ready)
    }

    /// Looks that the rules' common ground needs: one manifest for each group of failing pods.
    pub(crate) fn wants(&self) -> Vec<Look> {
        self.groups.iter().take(group::EXAMINED).map(|group| look::yaml(&group.sample_object())).collect()
    }

    /// The service that a client means by `host`, seen from a namespace.
    pub(crate) fn service_named(&self, host: &str, from: &Name) -> Option<&Service<'a>> {
        let mut parts = host.split('.');
        let name = parts.next().unwrap_or_default();
        let namespace = parts.next().unwrap_or(from.as_str());
        self.services.iter().find(|service| {
            let object = &service.object;
            (object.name.as_str() == name
                && object.namespace.as_ref().is_some_and(|own| own.as_str() == namespace))
                || (service.address.is_some_and(|address| address == host))
        })
    }
}

fn once<T>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> Object) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    let mut seen = BTreeSet::new();
    items.retain(|item| seen.insert(key(item)));
    items.sort_by_key(|item| key(item));
    items
}

/// The namespace of a row: its own column, or the one that the command asked for.
fn namespace_of(row: &crate::table::Row<'_>) -> Option<Name> {
    let asked = || row.command.split(" -n ").nth(1).and_then(|rest| rest.split_whitespace().next());
    Name::parse(row.cell("NAMESPACE").or_else(asked)?)
}

/// The object that a row is about, where its name may be `kind.group/name`.
fn object_of(row: &crate::table::Row<'_>, kind: Kind) -> Option<Object> {
    let text = row.cell("NAME")?;
    let (kind, name) = match text.split_once('/') {
        Some((word, name)) => (Kind::parse(word)?, name),
        None => (kind, text),
    };
    Some(Object { kind, namespace: namespace_of(row), name: Name::parse(name)? })
}
