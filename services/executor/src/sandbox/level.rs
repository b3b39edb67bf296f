//! The layers of the sandbox, and how much a set of them comes to.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::View;

/// One mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Layer {
    /// Programs that raise privileges do not.
    NoNewPrivileges,
    /// No capability, or only those to read.
    Capabilities,
    /// Limits of each process.
    Rlimits,
    /// System calls that no command needs fail.
    Seccomp,
    /// Files and signals by the kernel's own list.
    Landlock,
    /// TCP by the same: without it and without a network of its own, a command with a gate reaches all of TCP.
    LandlockTcp,
    /// Processes, mounts and names of its own.
    Namespaces,
    /// A user namespace, where the executor may not do without.
    UserNamespace,
    /// A read-only tree without secrets.
    Root,
    /// A /proc of its own.
    Proc,
    /// No network, or only what the tool needs.
    Network,
    /// Limits of the whole tree.
    Cgroup,
}

/// Layers of one command.
pub(crate) type Layers = BTreeSet<Layer>;

impl Layer {
    pub(crate) const ALL: [Self; 12] = [
        Self::NoNewPrivileges,
        Self::Capabilities,
        Self::Rlimits,
        Self::Seccomp,
        Self::Landlock,
        Self::LandlockTcp,
        Self::Namespaces,
        Self::UserNamespace,
        Self::Root,
        Self::Proc,
        Self::Network,
        Self::Cgroup,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Capabilities => "capabilities",
            Self::Rlimits => "rlimits",
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::LandlockTcp => "landlock-tcp",
            Self::Namespaces => "namespaces",
            Self::UserNamespace => "user-namespace",
            Self::Root => "root",
            Self::Proc => "proc",
            Self::Network => "network",
            Self::Cgroup => "cgroup",
        }
    }

    /// The layers that cannot be without this one.
    pub(super) fn carries(self) -> &'static [Self] {
        match self {
            Self::Namespaces => &[Self::UserNamespace, Self::Root, Self::Proc, Self::Network],
            Self::Root => &[Self::Proc],
            Self::NoNewPrivileges => &[Self::Seccomp, Self::Landlock, Self::LandlockTcp],
            Self::Landlock => &[Self::LandlockTcp],
            Self::Capabilities
            | Self::Rlimits
            | Self::Seccomp
            | Self::LandlockTcp
            | Self::UserNamespace
            | Self::Proc
            | Self::Network
            | Self::Cgroup => &[],
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Layer {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|layer| layer.name() == text).ok_or(())
    }
}

/// How much of a sandbox a command has. The stronger is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Less than `Pod`.
    None,
    /// Landlock and seccomp: what an ordinary pod can have.
    Pod,
    /// Namespaces and a root of its own as well, with a /proc that is not its own or none.
    FullNoproc,
    /// Everything that isolates.
    Full,
}

impl Level {
    /// What `layers` come to for a command with this view. The host's /proc is part of the host's view.
    pub(crate) fn of(layers: &Layers, view: View) -> Self {
        let has = |all: &[Layer]| all.iter().all(|layer| layers.contains(layer));
        if !has(&[Layer::NoNewPrivileges, Layer::Landlock, Layer::Seccomp]) {
            Self::None
        } else if !has(&[Layer::Namespaces, Layer::Root, Layer::Capabilities]) {
            Self::Pod
        } else if view == View::Private && !has(&[Layer::Proc]) {
            Self::FullNoproc
        } else {
            Self::Full
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pod => "pod",
            Self::FullNoproc => "full-noproc",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_layer_costs_its_level() {
        let all: Layers = Layer::ALL.into_iter().collect();
        let without = |layer| all.iter().copied().filter(|own| *own != layer).collect::<Layers>();
        assert_eq!(Level::of(&all, View::Private), Level::Full);
        for (layer, private, host) in [
            (Layer::Proc, Level::FullNoproc, Level::Full),
            (Layer::UserNamespace, Level::Full, Level::Full),
            (Layer::Root, Level::Pod, Level::Pod),
            (Layer::Landlock, Level::None, Level::None),
            (Layer::Seccomp, Level::None, Level::None),
        ] {
            let left = without(layer);
            assert_eq!(
                (Level::of(&left, View::Private), Level::of(&left, View::Host)),
                (private, host),
                "{layer}"
            );
        }
        assert_eq!(Level::of(&Layers::new(), View::Operator), Level::None);
    }

    #[test]
    fn names_read_back() {
        assert!(Layer::ALL.into_iter().all(|layer| layer.name().parse() == Ok(layer)));
    }
}
