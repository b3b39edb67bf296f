//! What calls would touch: a host, a cluster, another server.

use std::{fs, path::PathBuf};

use serde::Deserialize;

use crate::tools::{Callable, Needs, Origin, Toolset};

/// Knows what there is to touch.
#[derive(Clone, Debug)]
pub(super) struct Targets {
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
    pub(super) fn new(kubeconfigs: Vec<PathBuf>) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { host, kubeconfigs }
    }

    /// What a call of a tool would touch. Reads files.
    pub(super) fn of(&self, tool: &Callable) -> String {
        match &tool.origin {
            Origin::Mcp(tool) => format!("server {}", tool.server()),
            Origin::Http(tool) => format!("HTTP API {}", tool.toolset()),
            Origin::Template(_) => self.host_and_cluster(),
            Origin::Builtin(own) if own.toolset == Toolset::Workspace => {
                format!("workspace of a session, {}", self.host_and_cluster())
            }
            Origin::Builtin(own) => match own.toolset.needs() {
                Needs::Nothing => String::new(),
                Needs::Bash => self.host_and_cluster(),
                Needs::Kubectl => self.cluster().unwrap_or_default(),
            },
        }
    }

    fn host_and_cluster(&self) -> String {
        let host = format!("host {}", self.host);
        self.cluster().map_or(host.clone(), |cluster| format!("{host}, {cluster}"))
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
        Some(format!("cluster {} (context {current})", context.context.cluster))
    }
}
