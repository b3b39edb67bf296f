//! What calls would touch: a host, a cluster, another server.

use std::{fs, path::PathBuf};

use serde::Deserialize;

use crate::tools::{Callable, Needs, Origin, Toolset};

const JOINED: &str = "joined as ";
const HOST: &str = "host ";
const CLUSTER: &str = "cluster ";
const NEXT: &str = ", ";

/// Knows what there is to touch.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// The cluster as whom this executor joined; empty if it did not.
    joined: String,
    host: String,
    kubeconfigs: Vec<PathBuf>,
}

/// The part of a kubeconfig that says where a cluster is.
#[derive(Debug, Default, Deserialize)]
struct Kubeconfig {
    #[serde(default, rename = "current-context")]
    current_context: String,
    #[serde(default)]
    contexts: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    context: Context,
}

#[derive(Debug, Deserialize)]
struct Context {
    cluster: String,
}

impl Targets {
    pub(super) fn new(kubeconfigs: Vec<PathBuf>, joined: String) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { joined, host, kubeconfigs }
    }

    /// Whether a call that is for a cluster is for this executor's.
    pub(super) fn are_of(&self, cluster: &str) -> bool {
        cluster.is_empty() || self.joined.is_empty() || cluster == self.joined
    }

    /// What a call of a tool would touch. Reads files.
    pub(super) fn of(&self, tool: &Callable) -> String {
        match (self.joined.as_str(), self.touched(tool)) {
            ("", touched) => touched,
            (_, touched) if touched.is_empty() => touched,
            (joined, touched) => format!("{JOINED}{joined}{NEXT}{touched}"),
        }
    }

    fn touched(&self, tool: &Callable) -> String {
        match &tool.origin {
            Origin::Mcp(tool) => format!("server {}", tool.server()),
            Origin::Http(tool) => format!("HTTP API {}", tool.toolset()),
            Origin::Template(_) => self.host_and_cluster(),
            Origin::Builtin(own) => match (own.toolset, own.toolset.needs()) {
                (Toolset::Workspace | Toolset::Repl, _) => {
                    format!("workspace of a session, {}", self.host_and_cluster())
                }
                (_, Needs::Nothing) => String::new(),
                (_, Needs::Bash) => self.host_and_cluster(),
                (_, Needs::Kubectl) => self.cluster().unwrap_or_default(),
            },
        }
    }

    fn host_and_cluster(&self) -> String {
        let host = format!("{HOST}{}", self.host);
        self.cluster().map_or(host.clone(), |cluster| format!("{host}{NEXT}{cluster}"))
    }

    /// The cluster that kubectl would speak to: the first context that a file names counts, as it does there.
    fn cluster(&self) -> Option<String> {
        let files: Vec<Kubeconfig> = self
            .kubeconfigs
            .iter()
            .filter_map(|path| serde_saphyr::from_str(&fs::read_to_string(path).ok()?).ok())
            .collect();
        let current = files.iter().map(|file| &file.current_context).find(|name| !name.is_empty())?;
        let context = files.iter().flat_map(|file| &file.contexts).find(|own| own.name == *current)?;
        Some(format!("{CLUSTER}{} (context {current})", context.context.cluster))
    }
}

/// Whether two targets are the same but for the host: the hosts of a cluster stand for each other. Without a cluster the
/// host counts.
pub(super) fn same_place(one: &str, other: &str) -> bool {
    let place = |target| str::split(target, NEXT).filter(|part| !part.starts_with(HOST));
    let has_cluster = place(one).any(|part| part.starts_with(CLUSTER) || part.starts_with(JOINED));
    one == other || (has_cluster && place(one).eq(place(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_cluster_stand_for_each_other() {
        for (one, other, same) in [
            ("host a", "host a", true),
            ("host a", "host b", false),
            ("host a, cluster c (context d)", "host b, cluster c (context d)", true),
            ("host a, cluster c (context d)", "host a, cluster c (context e)", false),
            ("joined as eu, host a", "joined as eu, host b", true),
            ("joined as eu, host a", "joined as us, host a", false),
            ("joined as eu, host a", "host a", false),
            ("workspace of a session, host a", "workspace of a session, host b", false),
            (
                "workspace of a session, host a, cluster c (context d)",
                "workspace of a session, host b, cluster c (context d)",
                true,
            ),
            ("", "host a", false),
        ] {
            assert_eq!(same_place(one, other), same, "{one} | {other}");
        }
    }

    #[test]
    fn a_call_for_another_cluster_is_not_for_this_executor() {
        let targets = |joined: &str| Targets::new(Vec::new(), joined.to_owned());
        assert!(targets("eu").are_of("eu") && targets("eu").are_of("") && targets("").are_of("eu"));
        assert!(!targets("eu").are_of("us"));
    }
}
