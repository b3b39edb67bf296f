//! Pods as `kubectl get pods` lists them.

use crate::{
    name::{Kind, Name, Object},
    table::Row,
    time::Age,
};

/// A pod that is this young may still be on its way.
const STARTS_WITHIN: Age = Age(60);

/// A pod in a list.
#[derive(Clone, Debug)]
pub(crate) struct Pod<'a> {
    pub(crate) namespace: Name,
    pub(crate) name: Name,
    pub(crate) ready: u32,
    pub(crate) containers: u32,
    pub(crate) status: &'a str,
    pub(crate) restarts: u32,
    /// How long ago it was restarted, where the server tells.
    pub(crate) restarted: Option<Age>,
    pub(crate) age: Option<Age>,
    pub(crate) node: Option<Name>,
    pub(crate) row: Row<'a>,
}

/// What a list tells of a pod's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Ready,
    /// It ended, as it should or long since replaced.
    Done,
    Starting,
    /// Ready, and restarted: whether lately, the list need not tell.
    Restarted,
    Failing,
}

impl<'a> Pod<'a> {
    pub(super) fn read(row: Row<'a>) -> Option<Self> {
        let (namespace, name) = key(&row)?;
        let (ready, containers) = row.cell("READY")?.split_once('/')?;
        let mut restarts = row.cell("RESTARTS")?.split_whitespace();
        Some(Self {
            namespace,
            name,
            ready: ready.parse().ok()?,
            containers: containers.parse().ok()?,
            status: row.cell("STATUS")?,
            restarts: restarts.next()?.parse().ok()?,
            restarted: restarts.next().and_then(|age| Age::parse(age.trim_start_matches('('))),
            age: row.cell("AGE").and_then(Age::parse),
            node: row.cell("NODE").and_then(Name::parse),
            row,
        })
    }

    pub(crate) fn object(&self) -> Object {
        Object::new(Kind::Pod, &self.namespace, &self.name)
    }

    pub(crate) fn health(&self) -> Health {
        let is_young = self.age.is_some_and(|age| age <= STARTS_WITHIN);
        match self.status {
            "Completed"
            | "Succeeded"
            | "Evicted"
            | "ContainerStatusUnknown"
            | "NodeShutdown"
            | "Terminated" => Health::Done,
            "Running" if self.ready < self.containers && is_young && self.restarts == 0 => Health::Starting,
            "Running" if self.ready < self.containers => Health::Failing,
            "Running" if self.restarts == 0 => Health::Ready,
            "Running" if self.restarted.is_some_and(|age| !age.is_recent()) => Health::Ready,
            "Running" => Health::Restarted,
            "Pending" | "ContainerCreating" | "PodInitializing" if is_young => Health::Starting,
            "Terminating" if is_young => Health::Done,
            _ => Health::Failing,
        }
    }
}

pub(super) fn key(row: &Row<'_>) -> Option<(Name, Name)> {
    Some((super::namespace_of(row)?, Name::parse(row.cell("NAME")?)?))
}

/// Whether a pod's name is what controllers make of their own: `web-5d9c8f7b6-x2x4z`, `db-0`, `agent-x2x4z`.
pub(super) fn is_named_after(pod: &Name, owner: &Object) -> bool {
    let Some(rest) = pod.as_str().strip_prefix(owner.name.as_str()).and_then(|rest| rest.strip_prefix('-'))
    else {
        return false;
    };
    let parts: Vec<&str> = rest.split('-').collect();
    let is_random = |part: &str| part.len() == 5 && part.chars().all(|c| c.is_ascii_alphanumeric());
    match (owner.kind, parts.as_slice()) {
        (Kind::StatefulSet, [number]) => number.chars().all(|c| c.is_ascii_digit()),
        (Kind::Deployment, [hash, random]) => is_random(random) && (5..=10).contains(&hash.len()),
        (Kind::DaemonSet | Kind::ReplicaSet | Kind::Job, [random]) => is_random(random),
        // indexed jobs
        (Kind::Job, [_, random]) => is_random(random),
        _ => false,
    }
}
