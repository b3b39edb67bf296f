//! What one command asks for, and what it gets of the sandbox.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Layer, Layers};

/// What programs see of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum View {
    /// Programs, libraries and their private directory, and nothing else.
    Private,
    /// The machine as it is, without secrets, to read.
    Host,
    /// The same with the executor's own rights to change it and with its network: for what a person or the operator's
    /// prefixes allowed.
    Approved,
    /// All that the executor itself sees and may do: for what the operator wrote.
    #[default]
    Operator,
}

/// What programs reach over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Network {
    /// Nothing. The host's view still shows the host's sockets and routes.
    None,
    /// One port of 127.0.0.1, on which the executor listens.
    Gate(u16),
    /// What the executor reaches.
    #[default]
    Host,
}

/// A file or a directory in the private directory of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) name: String,
    /// `None` makes it an empty directory.
    pub(crate) content: Option<String>,
    /// The variable that says where it is.
    pub(crate) variable: String,
}

/// A variable that programs get. Its value is in no log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Variable").field(&self.name).finish()
    }
}

impl View {
    /// Whether it isolates from the rest of the machine, which then cannot be changed.
    pub(crate) fn isolates(self) -> bool {
        match self {
            Self::Private | Self::Host => true,
            Self::Approved | Self::Operator => false,
        }
    }
}

/// What a command needs. The default is what the operator's own programs get: everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Access {
    pub(crate) view: View,
    pub(crate) network: Network,
    /// Whether it reaches services of the machine, such as systemd, over their sockets.
    pub(crate) local_sockets: bool,
    pub(crate) files: Vec<Placed>,
    pub(crate) variables: Vec<Variable>,
    /// A directory of the host that it may change, and in which it starts.
    pub(crate) workspace: Option<PathBuf>,
}

/// What a launcher applies before the programs start. All of it, or they do not start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Confinement {
    pub(crate) layers: Layers,
    /// An empty directory of the host, over which private ones are mounted.
    pub(crate) base: PathBuf,
    /// The private directory, where it is one of the host.
    pub(crate) work: Option<PathBuf>,
    /// What is hidden beside the usual places of secrets.
    pub(crate) hidden: Vec<PathBuf>,
    /// Groups to join.
    pub(crate) groups: Vec<PathBuf>,
    /// Processes that it may have at the same time.
    pub(crate) processes: u64,
}

impl Confinement {
    pub(super) fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }
}
