//! Workloads, jobs, claims, services and nodes as kubectl lists them.

use super::{namespace_of, object_of, once};
use crate::{
    evidence::Evidence,
    name::{Kind, Object},
    table::Row,
    time::Age,
};

/// A Deployment, StatefulSet or DaemonSet.
#[derive(Clone, Debug)]
pub(crate) struct Workload<'a> {
    pub(crate) object: Object,
    pub(crate) ready: u32,
    pub(crate) wanted: u32,
    pub(crate) age: Option<Age>,
    /// Labels that its pods have, as `key=value,…`.
    pub(crate) selector: Option<&'a str>,
    pub(crate) row: Row<'a>,
}

/// A Job.
#[derive(Clone, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) object: Object,
    pub(crate) is_complete: bool,
    pub(crate) row: Row<'a>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) object: Object,
    pub(crate) status: &'a str,
    pub(crate) class: Option<&'a str>,
    pub(crate) age: Option<Age>,
    pub(crate) row: Row<'a>,
}

/// A Service.
#[derive(Clone, Debug)]
pub(crate) struct Service<'a> {
    pub(crate) object: Object,
    pub(crate) selector: Option<&'a str>,
    pub(crate) address: Option<&'a str>,
    pub(crate) row: Row<'a>,
}

/// A Service's Endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints<'a> {
    /// The service.
    pub(crate) service: Object,
    pub(crate) row: Row<'a>,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) object: Object,
    pub(crate) is_ready: bool,
    pub(crate) row: Row<'a>,
}

impl<'a> Workload<'a> {
    pub(super) fn read(row: Row<'a>) -> Option<Self> {
        let (ready, wanted) = match row.cell("DESIRED") {
            Some(wanted) => (row.cell("READY")?, wanted),
            None => row.cell("READY")?.split_once('/')?,
        };
        Some(Self {
            object: object_of(&row, Kind::Deployment)?,
            ready: ready.parse().ok()?,
            wanted: wanted.parse().ok()?,
            age: row.cell("AGE").and_then(Age::parse),
            selector: row.cell("SELECTOR"),
            row,
        })
    }
}

impl<'a> Job<'a> {
    pub(super) fn read(row: Row<'a>) -> Option<Self> {
        let done = row.cell("COMPLETIONS")?;
        let (succeeded, wanted) = done.split_once('/')?;
        Some(Self {
            object: object_of(&row, Kind::Job)?,
            is_complete: succeeded == wanted.split_whitespace().next()?
                || row.cell("STATUS") == Some("Complete"),
            row,
        })
    }
}

pub(super) fn claims(evidence: &Evidence) -> Vec<Claim<'_>> {
    let claims = evidence.rows("kubectl get pvc").into_iter().filter_map(|row| {
        Some(Claim {
            object: object_of(&row, Kind::Claim)?,
            status: row.cell("STATUS")?,
            class: row.cell("STORAGECLASS"),
            age: row.cell("AGE").and_then(Age::parse),
            row,
        })
    });
    once(claims, |claim| claim.object.clone())
}

pub(super) fn services(evidence: &Evidence) -> Vec<Service<'_>> {
    let services = evidence.rows("kubectl get services").into_iter().filter_map(|row| {
        Some(Service {
            object: object_of(&row, Kind::Service)?,
            selector: row.cell("SELECTOR"),
            address: row.cell("CLUSTER-IP").filter(|address| *address != "None"),
            row,
        })
    });
    once(services, |service| service.object.clone())
}

pub(super) fn empty_endpoints(evidence: &Evidence) -> Vec<Endpoints<'_>> {
    let empty =
        evidence.rows("kubectl get endpoints").into_iter().filter(|row| row.cell("ENDPOINTS").is_none());
    let empty = empty.filter_map(|row| Some(Endpoints { service: object_of(&row, Kind::Service)?, row }));
    once(empty.filter(|endpoints| namespace_of(&endpoints.row).is_some()), |endpoints| {
        endpoints.service.clone()
    })
}

pub(super) fn nodes(evidence: &Evidence) -> Vec<Node<'_>> {
    let nodes = evidence.rows("kubectl get nodes").into_iter().filter_map(|row| {
        let object = Object { namespace: None, ..object_of(&row, Kind::Node)? };
        Some(Node { object, is_ready: row.cell("STATUS")?.split(',').any(|word| word == "Ready"), row })
    });
    once(nodes, |node| node.object.clone())
}
