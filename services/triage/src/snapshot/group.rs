//! Failing pods, grouped: replicas of one owner that fail in one way are one matter.

use std::collections::BTreeMap;

use super::{Health, Pod, Snapshot};
use crate::{
    evidence::Fetched,
    look, manifest,
    name::{Kind, Name, Object},
};

/// Groups whose manifest is read; more would not be read by anybody.
pub(super) const EXAMINED: usize = 40;

/// The ways in which a list shows pods to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Crashing,
    Image,
    Config,
    Init,
    Waiting,
    Unready,
    Terminating,
}

/// Pods of one owner that fail in one way.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The workload or job; a lone pod itself.
    pub(crate) owner: Object,
    pub(crate) class: Class,
    /// The failing pods; the first is the one that was examined.
    pub(crate) pods: Vec<Pod<'a>>,
    /// The first pod's manifest, if it could be read.
    pub(crate) manifest: Option<manifest::Pod>,
    /// Where the manifest was read from.
    pub(crate) yaml: Option<&'a Fetched>,
}

impl<'a> Group<'a> {
    /// The pod that was examined.
    pub(crate) fn sample(&self) -> Option<&Pod<'a>> {
        self.pods.first()
    }

    pub(crate) fn sample_object(&self) -> Object {
        self.sample().map_or_else(|| self.owner.clone(), Pod::object)
    }

    pub(crate) fn namespace(&self) -> Option<&Name> {
        self.owner.namespace.as_ref()
    }

    /// The owner and all its failing pods.
    pub(crate) fn covers(&self) -> Vec<Object> {
        std::iter::once(self.owner.clone()).chain(self.pods.iter().map(Pod::object)).collect()
    }
}

pub(super) fn form<'a>(snapshot: &Snapshot<'a>) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(Object, Class), Vec<Pod<'a>>> = BTreeMap::new();
    for pod in snapshot.pods.iter().filter(|pod| needs_explanation(snapshot, pod)) {
        let owner = snapshot.owner_of(&pod.namespace, &pod.name);
        let has_ended = matches!(pod.status, "Error" | "OOMKilled" | "DeadlineExceeded");
        if has_ended && owner.as_ref().is_some_and(|owner| owner.kind == Kind::Job) {
            continue; // the job's business
        }
        groups.entry((owner.unwrap_or_else(|| pod.object()), class(pod))).or_default().push(pod.clone());
    }
    groups
        .into_iter()
        .map(|((owner, class), mut pods)| {
            pods.sort_by_key(|pod| {
                (pod.status == "Running", std::cmp::Reverse(pod.restarts), pod.name.clone())
            });
            let yaml = pods.first().and_then(|pod| snapshot.evidence.shown(&look::yaml(&pod.object())));
            let manifest = yaml.and_then(|yaml| manifest::Pod::read(&yaml.output));
            Group { owner, class, pods, manifest, yaml }
        })
        .collect()
}

fn needs_explanation(snapshot: &Snapshot<'_>, pod: &Pod<'_>) -> bool {
    match pod.health() {
        Health::Ready | Health::Done | Health::Starting => false,
        Health::Failing => true,
        // where the list does not say when it was restarted, recent warnings and failing siblings give it away
        Health::Restarted => {
            let is_telling = |reason: &str| matches!(reason, "BackOff" | "Unhealthy");
            pod.restarted.is_some()
                || snapshot.warnings(&pod.object()).any(|event| is_telling(event.reason))
                || has_failing_sibling(snapshot, pod)
        }
    }
}

fn has_failing_sibling(snapshot: &Snapshot<'_>, pod: &Pod<'_>) -> bool {
    let Some(owner) = snapshot.owner_of(&pod.namespace, &pod.name) else { return false };
    let is_sibling =
        |other: &&Pod<'_>| snapshot.owner_of(&other.namespace, &other.name).as_ref() == Some(&owner);
    snapshot.pods.iter().filter(|other| other.health() == Health::Failing).any(|other| is_sibling(&other))
}

fn class(pod: &Pod<'_>) -> Class {
    match pod.status {
        "Running" if pod.restarts == 0 => Class::Unready,
        "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => Class::Image,
        "CreateContainerConfigError" | "CreateContainerError" => Class::Config,
        "Pending" | "ContainerCreating" | "PodInitializing" => Class::Waiting,
        "Terminating" | "Unknown" => Class::Terminating,
        status if status.starts_with("Init:") => Class::Init,
        _ => Class::Crashing,
    }
}
