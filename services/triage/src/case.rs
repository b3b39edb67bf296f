//! An investigation: a question, what was fetched for it, and what is to be looked at next.

use crate::{
    evidence::{Evidence, Failure, Reason},
    look::{self, Look, Scope},
    name::{Kind, Name, Object},
    question::{Mention, Question, Topic},
    rules,
    snapshot::Snapshot,
    time::Moment,
};

/// Workloads, as one look.
const WORKLOADS: &str = "deployments,statefulsets,daemonsets";
/// Pods whose row says that all is well.
const FINE: &str = r" ([0-9]+)/\1 +Running +0 | Completed ";

/// An investigation.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) question: &'a Question,
    pub(crate) evidence: &'a Evidence,
    pub(crate) snapshot: Snapshot<'a>,
    pub(crate) cluster: Access,
    pub(crate) scope: Scope,
    pub(crate) focus: Focus,
}

/// Whether there is a cluster to look at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Unknown,
    Open,
    Closed(Failure),
}

/// What of the scope the question is about.
#[derive(Debug, Default)]
pub(crate) struct Focus {
    /// The objects that it names.
    pub(crate) objects: Vec<Object>,
    /// Words that seem to be names and name nothing that was seen.
    pub(crate) unknown: Vec<Mention>,
}

impl<'a> Case<'a> {
    pub(crate) fn open(question: &'a Question, evidence: &'a Evidence, now: Option<Moment>) -> Self {
        let (mut scope, rest) = scope(question, &namespaces(evidence));
        let mut snapshot = Snapshot::new(evidence, now, &scope);
        let mut focus = focus(question, &snapshot, &rest);
        // names that were found in one namespace only make that the scope
        if let Some(only) = only_namespace(&focus.objects) {
            scope = Scope::Namespace(only);
            snapshot = Snapshot::new(evidence, now, &scope);
            focus = self::focus(question, &snapshot, &rest);
        }
        Self { question, evidence, snapshot, cluster: access(evidence), scope, focus }
    }

    /// All looks that the question needs, as far as that can be told yet.
    pub(crate) fn looks(&self) -> Vec<Look> {
        let mut looks = Vec::new();
        let is_closed = matches!(self.cluster, Access::Closed(_));
        if self.question.topic != Topic::Host {
            looks.extend([look::namespaces(), look::nodes()]);
            let is_told = matches!(self.scope, Scope::Namespace(_));
            if !is_closed && (self.cluster == Access::Open || is_told) {
                looks.extend(self.sweep());
            }
        }
        if self.question.topic != Topic::Cluster || is_closed {
            looks.extend(machine());
        }
        looks.extend(self.snapshot.wants());
        looks.extend(rules::ALL.iter().flat_map(|rule| (rule.wants)(&self.snapshot)));
        looks
    }

    /// The wide look at everything in the scope.
    fn sweep(&self) -> Vec<Look> {
        let scope = &self.scope;
        let common = [
            look::list(WORKLOADS, scope),
            look::list("jobs", scope),
            look::list("services", scope),
            look::warnings(scope),
        ];
        let mut looks = match scope {
            Scope::Namespace(_) => {
                vec![look::list("pods", scope), look::list("pvc", scope), look::list("endpoints", scope)]
            }
            Scope::Cluster => vec![
                look::pod_counts(),
                look::list_except("pods", scope, FINE),
                look::list_except("pvc", scope, " Bound "),
                look::list_except("endpoints", scope, ":[0-9]"),
                look::node_conditions(),
            ],
        };
        looks.extend(common);
        let words: Vec<&Name> = self.question.mentions.iter().map(|mention| &mention.word).take(5).collect();
        if *scope == Scope::Cluster && !words.is_empty() {
            looks.push(look::pods_named(&words));
        }
        looks
    }

    /// Whether the namespace that the question names exists; `None` if that is not known.
    pub(crate) fn namespace_exists(&self) -> Option<bool> {
        let Scope::Namespace(name) = &self.scope else { return None };
        let all = namespaces(self.evidence);
        (!all.is_empty()).then(|| all.contains(name))
    }
}

/// The looks at the machine.
fn machine() -> Vec<Look> {
    use look::host::{disks, failed_units, inodes, kernel_log, load, memory, ports, processors};
    vec![disks(), inodes(), memory(), load(), processors(), kernel_log(), failed_units(), ports()]
}

/// The names of all namespaces, if they could be listed.
pub(crate) fn namespaces(evidence: &Evidence) -> Vec<Name> {
    evidence.rows("kubectl get namespaces").iter().filter_map(|row| Name::parse(row.cell("NAME")?)).collect()
}

fn access(evidence: &Evidence) -> Access {
    let kubectl: Vec<_> =
        evidence.fetched.iter().filter(|fetched| fetched.command.starts_with("kubectl")).collect();
    let answered = |failure: &Failure| matches!(failure.reason, Reason::Forbidden | Reason::NotFound);
    if kubectl.iter().any(|fetched| fetched.failure.as_ref().is_none_or(answered)) {
        return Access::Open;
    }
    let first =
        kubectl.iter().filter_map(|fetched| fetched.failure.clone()).min_by_key(|failure| failure.reason);
    first.map_or(Access::Unknown, Access::Closed)
}

/// Where to look, and the mentions that are left to be names of objects.
fn scope(question: &Question, namespaces: &[Name]) -> (Scope, Vec<Mention>) {
    let mentions = &question.mentions;
    let named = question.namespace.clone().or_else(|| question.refers_to.as_ref()?.namespace.clone());
    if let Some(name) = named {
        return (Scope::Namespace(name), mentions.clone());
    }
    let may_be =
        |mention: &&Mention| mention.kind.is_none_or(|kind| kind == Kind::Namespace || !mention.is_certain);
    let exact = mentions.iter().filter(may_be).find(|mention| namespaces.contains(&mention.word));
    let parts = |mention: &Mention| {
        namespaces.iter().filter(|name| name.matches(mention.word.as_str())).collect::<Vec<_>>()
    };
    let found = exact.map(|mention| (mention, mention.word.clone())).or_else(|| {
        let mut candidates = mentions.iter().filter(may_be);
        candidates.find_map(|mention| match parts(mention).as_slice() {
            [only] => Some((mention, (*only).clone())),
            _ => None,
        })
    });
    match found {
        Some((used, name)) => {
            (Scope::Namespace(name), mentions.iter().filter(|mention| *mention != used).cloned().collect())
        }
        None => (Scope::Cluster, mentions.clone()),
    }
}

fn focus(question: &Question, snapshot: &Snapshot<'_>, mentions: &[Mention]) -> Focus {
    let mut focus = Focus { objects: question.refers_to.iter().cloned().collect(), unknown: Vec::new() };
    let all = objects(snapshot);
    for mention in mentions {
        let of_kind = |object: &&Object| mention.kind.is_none_or(|kind| kind == object.kind);
        let exact = |object: &&Object| object.name == mention.word;
        let part = |object: &&Object| object.name.matches(mention.word.as_str());
        let tries: [Vec<&Object>; 4] = [
            all.iter().filter(exact).filter(of_kind).collect(),
            all.iter().filter(exact).collect(),
            all.iter().filter(part).filter(of_kind).collect(),
            all.iter().filter(part).collect(),
        ];
        match tries.into_iter().find(|found| !found.is_empty()) {
            Some(found) => focus.objects.extend(found.into_iter().cloned()),
            None => focus.unknown.push(mention.clone()),
        }
    }
    focus
}

/// The namespace that all of some objects are in.
fn only_namespace(objects: &[Object]) -> Option<Name> {
    let first = objects.first()?.namespace.clone()?;
    objects.iter().all(|object| object.namespace.as_ref() == Some(&first)).then_some(first)
}

/// Everything in a snapshot that has a name.
fn objects(snapshot: &Snapshot<'_>) -> Vec<Object> {
    let mut all: Vec<Object> = snapshot.workloads.iter().map(|workload| workload.object.clone()).collect();
    all.extend(snapshot.jobs.iter().map(|job| job.object.clone()));
    all.extend(snapshot.services.iter().map(|service| service.object.clone()));
    all.extend(snapshot.claims.iter().map(|claim| claim.object.clone()));
    all.extend(snapshot.nodes.iter().map(|node| node.object.clone()));
    all.extend(snapshot.pods.iter().map(crate::snapshot::Pod::object));
    all
}
