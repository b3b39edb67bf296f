//! Names of objects: checked, so that they can stand in a command line.

use std::fmt;

/// The name of a Kubernetes object: letters, digits, `-`, `.` and `_`, not starting with `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(String);

impl Name {
    /// The text as a name, if it can be one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fits = text.len() <= 253
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
        fits.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `word` names it, wholly or in part: `checkout` and `api` name `checkout-api`, and `check` does
    /// too, as the beginning of a part.
    pub(crate) fn matches(&self, word: &str) -> bool {
        let at_start = |rest: &str| rest.is_empty() || rest.starts_with(['-', '.']) || word.len() >= 5;
        let mut parts = self.0.match_indices(word).filter(|(at, _)| {
            *at == 0 || matches!(self.0.as_bytes().get(at.wrapping_sub(1)), Some(b'-' | b'.'))
        });
        parts.any(|(at, _)| self.0.get(at + word.len()..).is_some_and(at_start))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kinds of object that rules speak about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Node,
    Claim,
    Pod,
    Deployment,
    StatefulSet,
    DaemonSet,
    ReplicaSet,
    Job,
    CronJob,
    Service,
    ConfigMap,
    Secret,
    Namespace,
    /// The machine that the tools run on.
    Host,
}

impl Kind {
    const ALL: [(Self, &'static str, &'static [&'static str]); 13] = [
        (Self::Node, "node", &["nodes", "no"]),
        (Self::Claim, "pvc", &["pvcs", "persistentvolumeclaim", "persistentvolumeclaims", "claim", "claims"]),
        (Self::Pod, "pod", &["pods", "po"]),
        (Self::Deployment, "deployment", &["deployments", "deploy", "deployment.apps"]),
        (Self::StatefulSet, "statefulset", &["statefulsets", "sts", "statefulset.apps"]),
        (Self::DaemonSet, "daemonset", &["daemonsets", "ds", "daemonset.apps"]),
        (Self::ReplicaSet, "replicaset", &["replicasets", "rs", "replicaset.apps"]),
        (Self::Job, "job", &["jobs", "job.batch"]),
        (Self::CronJob, "cronjob", &["cronjobs", "cj", "cronjob.batch"]),
        (Self::Service, "service", &["services", "svc"]),
        (Self::ConfigMap, "configmap", &["configmaps", "cm"]),
        (Self::Secret, "secret", &["secrets"]),
        (Self::Namespace, "namespace", &["namespaces", "ns"]),
    ];

    /// The kind that a word stands for, as kubectl understands it.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, name, others)| *name == word || others.contains(&word))
            .map(|(kind, ..)| *kind)
    }

    /// What kubectl calls it.
    pub(crate) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("host", |(_, name, _)| name)
    }

    /// What people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Claim => "PersistentVolumeClaim",
            Self::Pod => "Pod",
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
            Self::Service => "Service",
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Namespace => "Namespace",
            Self::Host => "This machine",
        }
    }

    /// Whether it has no namespace.
    pub(crate) fn is_global(self) -> bool {
        matches!(self, Self::Node | Self::Namespace | Self::Host)
    }
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<Name>,
    pub(crate) name: Name,
}

impl Object {
    pub(crate) fn new(kind: Kind, namespace: &Name, name: &Name) -> Self {
        Self { kind, namespace: Some(namespace.clone()), name: name.clone() }
    }

    /// Something about the machine itself.
    pub(crate) fn host(what: &str) -> Self {
        Self { kind: Kind::Host, namespace: None, name: Name(what.to_owned()) }
    }

    /// ` -n NAMESPACE`, or nothing.
    pub(crate) fn flag(&self) -> String {
        self.namespace.as_ref().map_or_else(String::new, |namespace| format!(" -n {namespace}"))
    }

    /// How kubectl names it in one word: `deployment/web`.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.kind.word(), self.name)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.title();
        match (&self.namespace, self.kind) {
            (_, Kind::Host) => f.write_str(kind),
            (Some(namespace), _) => write!(f, "{kind} `{namespace}/{}`", self.name),
            (None, _) => write!(f, "{kind} `{}`", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_in_a_command() {
        assert!(Name::parse("web-7d9.x_1").is_some());
        for bad in ["", "-n", "a b", "a;b", "$(x)", "a/b", "`x`"] {
            assert_eq!(Name::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_word_names_whole_parts_or_their_beginning() {
        let name = Name::parse("checkout-api-v2").expect("a name");
        for word in ["checkout", "api", "check", "checkout-api", "v2"] {
            assert!(name.matches(word), "{word}");
        }
        for word in ["heck", "ap", "out", "pi", "checkout-web"] {
            assert!(!name.matches(word), "{word}");
        }
    }
}
