//! The looks that an investigation takes: each is one read-only command.

use serde_json::{Value, json};

use crate::name::{Kind, Name, Object};

/// Lines of a log that are asked for.
const TAIL: u32 = 60;

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    Cluster,
    Namespace(Name),
}

impl Scope {
    fn flag(&self) -> String {
        match self {
            Self::Cluster => "-A".to_owned(),
            Self::Namespace(name) => format!("-n {name}"),
        }
    }
}

/// One look: a command, and the tool that does the same where there is no shell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Look {
    pub(crate) command: String,
    alternative: Option<(&'static str, Value)>,
}

impl Look {
    fn shell(command: impl Into<String>) -> Self {
        Self { command: command.into(), alternative: None }
    }

    fn or(mut self, tool: &'static str, arguments: Value) -> Self {
        self.alternative = Some((tool, arguments));
        self
    }

    /// The tool call that takes this look with the tools on offer: name and arguments.
    pub(crate) fn call(&self, offered: impl Fn(&str) -> bool) -> Option<(&'static str, Value)> {
        if offered("bash") {
            let mut prefixes: Vec<&str> =
                self.command.split(" | ").filter_map(|part| part.split_whitespace().next()).collect();
            prefixes.dedup();
            return Some((
                "bash",
                json!({"command": self.command, "suggested_prefixes": prefixes, "timeout": 30}),
            ));
        }
        self.alternative.clone().filter(|(tool, _)| offered(tool))
    }

    /// Whether a call of this tool took this look.
    pub(crate) fn is(&self, tool: &str, arguments: &serde_json::Map<String, Value>) -> bool {
        arguments.get("command").and_then(Value::as_str) == Some(&self.command)
            || self
                .alternative
                .as_ref()
                .is_some_and(|(name, wanted)| *name == tool && wanted.as_object() == Some(arguments))
    }
}

pub(crate) fn namespaces() -> Look {
    Look::shell("kubectl get namespaces --request-timeout=10s")
        .or("kubectl_get_by_kind_in_cluster", json!({"kind": "namespaces"}))
}

pub(crate) fn nodes() -> Look {
    Look::shell("kubectl get nodes --request-timeout=10s")
        .or("kubectl_get_by_kind_in_cluster", json!({"kind": "nodes"}))
}

/// The conditions that each node meets: `Ready`, and pressures.
pub(crate) fn node_conditions() -> Look {
    Look::shell(
        "kubectl get nodes -o custom-columns='NAME:.metadata.name,MET:.status.conditions[?(@.status==\"True\")].type'",
    )
}

pub(crate) fn node_labels() -> Look {
    Look::shell("kubectl get nodes --show-labels")
}

/// All objects of some kinds, as the table that kubectl prints.
pub(crate) fn list(kinds: &'static str, scope: &Scope) -> Look {
    let look = Look::shell(format!("kubectl get {kinds} {} -o wide", scope.flag()));
    match scope {
        Scope::Cluster => look.or("kubectl_get_by_kind_in_cluster", json!({"kind": kinds})),
        Scope::Namespace(name) => {
            look.or("kubectl_get_by_kind_in_namespace", json!({"kind": kinds, "namespace": name.as_str()}))
        }
    }
}

/// Like [`list`], without the rows that match.
pub(crate) fn list_except(kinds: &'static str, scope: &Scope, pattern: &str) -> Look {
    let all = list(kinds, scope);
    Look { command: format!("{} | grep -vE '{pattern}'", all.command), ..all }
}

/// How many pods each namespace has.
pub(crate) fn pod_counts() -> Look {
    Look::shell("kubectl get pods -A --no-headers | cut -d ' ' -f 1 | sort | uniq -c")
}

/// Pods with one of these words in their line.
pub(crate) fn pods_named(words: &[&Name]) -> Look {
    let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
    Look::shell(format!("kubectl get pods -A -o wide | grep -E '^NAMESPACE|{}'", words.join("|")))
}

pub(crate) fn pods_on(node: &Name) -> Look {
    Look::shell(format!("kubectl get pods -A -o wide --field-selector spec.nodeName={node}"))
}

pub(crate) fn pod_labels(namespace: &Name) -> Look {
    Look::shell(format!("kubectl get pods -n {namespace} --show-labels"))
        .or("kubectl_get_by_kind_in_namespace", json!({"kind": "pods", "namespace": namespace.as_str()}))
}

pub(crate) fn warnings(scope: &Scope) -> Look {
    Look::shell(format!("kubectl get events {} --field-selector type=Warning", scope.flag()))
        .or("kubectl_get_by_kind_in_cluster", json!({"kind": "events"}))
}

/// All events, or those about one object.
pub(crate) fn events(scope: &Scope, about: Option<&Name>) -> Look {
    let about =
        about.map_or_else(String::new, |name| format!(" --field-selector involvedObject.name={name}"));
    Look::shell(format!("kubectl get events {}{about} --sort-by=.lastTimestamp", scope.flag()))
}

pub(crate) fn yaml(object: &Object) -> Look {
    let kind = object.kind.word();
    let mut arguments = json!({"kind": kind, "name": object.name.as_str()});
    if let Some(namespace) = &object.namespace {
        arguments["namespace"] = json!(namespace.as_str());
    }
    Look::shell(format!("kubectl get {kind} {}{} -o yaml", object.name, object.flag()))
        .or("kubectl_get_yaml", arguments)
}

pub(crate) fn describe(object: &Object) -> Look {
    let kind = object.kind.word();
    let mut arguments = json!({"kind": kind, "name": object.name.as_str()});
    if let Some(namespace) = &object.namespace {
        arguments["namespace"] = json!(namespace.as_str());
    }
    Look::shell(format!("kubectl describe {kind} {}{}", object.name, object.flag()))
        .or("kubectl_describe", arguments)
}

/// The conditions in an object's status, one a line: `Ready=False Reason: message`.
pub(crate) fn conditions(object: &Object) -> Look {
    Look::shell(format!(
        "kubectl get {} {}{} -o jsonpath='{{range .status.conditions[*]}}{{.type}}={{.status}} {{.reason}}: {{.message}}{{\"\\n\"}}{{end}}'",
        object.kind.word(), object.name, object.flag()
    ))
    .or("kubectl_describe", match &object.namespace {
        Some(namespace) => json!({"kind": object.kind.word(), "name": object.name.as_str(), "namespace": namespace.as_str()}),
        None => json!({"kind": object.kind.word(), "name": object.name.as_str()}),
    })
}

/// Which container's log, and of which run of it.
pub(crate) fn logs(namespace: &Name, pod: &Name, container: Option<&Name>, previous: bool) -> Look {
    let mut arguments = json!({"pod_name": pod.as_str(), "namespace": namespace.as_str()});
    if let Some(container) = container {
        arguments["container"] = json!(container.as_str());
    }
    let container =
        container.map_or_else(|| " --all-containers".to_owned(), |container| format!(" -c {container}"));
    let flag = if previous { " --previous" } else { "" };
    Look::shell(format!("kubectl logs {pod} -n {namespace}{container}{flag} --tail={TAIL}"))
        .or(if previous { "kubectl_previous_logs" } else { "kubectl_logs" }, arguments)
}

/// The names of all objects of a kind in a namespace.
pub(crate) fn names(kind: Kind, namespace: &Name) -> Look {
    Look::shell(format!("kubectl get {}s -n {namespace}", kind.word()))
        .or("kubectl_get_by_kind_in_namespace", json!({"kind": kind.word(), "namespace": namespace.as_str()}))
}

/// The keys of a ConfigMap, without their values.
pub(crate) fn config_keys(namespace: &Name, name: &Name) -> Look {
    Look::shell(format!(
        "kubectl get configmap {name} -n {namespace} -o go-template='{{{{range $key, $value := .data}}}}{{{{$key}}}}{{{{\"\\n\"}}}}{{{{end}}}}'"
    ))
}

pub(crate) fn storage_classes() -> Look {
    Look::shell("kubectl get storageclasses")
        .or("kubectl_get_by_kind_in_cluster", json!({"kind": "storageclasses"}))
}

pub(crate) fn quotas(namespace: &Name) -> Look {
    Look::shell(format!("kubectl get resourcequotas -n {namespace}")).or(
        "kubectl_get_by_kind_in_namespace",
        json!({"kind": "resourcequotas", "namespace": namespace.as_str()}),
    )
}

pub(crate) fn top(what: &'static str, scope: &Scope) -> Look {
    Look::shell(match (what, scope) {
        ("nodes", _) => "kubectl top nodes".to_owned(),
        (_, scope) => format!("kubectl top pods {}", scope.flag()),
    })
    .or(if what == "nodes" { "kubectl_top_nodes" } else { "kubectl_top_pods" }, json!({}))
}

/// Looks at the machine itself.
pub(crate) mod host {
    use super::Look;

    pub(crate) fn disks() -> Look {
        Look::shell("df -P")
    }

    pub(crate) fn inodes() -> Look {
        Look::shell("df -iP")
    }

    pub(crate) fn memory() -> Look {
        Look::shell("free -m")
    }

    pub(crate) fn load() -> Look {
        Look::shell("uptime")
    }

    pub(crate) fn processors() -> Look {
        Look::shell("nproc")
    }

    pub(crate) fn kernel_log() -> Look {
        Look::shell(
            "dmesg -T 2>&1 | grep -iE 'out of memory|killed process|not permitted|denied' | tail -n 20",
        )
    }

    pub(crate) fn failed_units() -> Look {
        Look::shell("systemctl --failed --no-legend --plain")
    }

    pub(crate) fn unit(name: &crate::name::Name) -> Look {
        Look::shell(format!("systemctl status {name} --no-pager --lines=15"))
    }

    pub(crate) fn ports() -> Look {
        Look::shell("ss -ltn")
    }

    pub(crate) fn processes(order: &'static str) -> Look {
        Look::shell(format!("ps aux --sort=-%{order} | head -n 8"))
    }
}
