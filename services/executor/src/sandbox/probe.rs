//! What this machine can do, found out once in commands that are thrown away; and what each command gets of it.

use std::{collections::BTreeMap, io, sync::Arc};

use rustix::process::geteuid;

use super::{
    Confinement, Group, Layer, Layers, Level, Minimum, Network, Refused, Setting, View, cgroup::Hierarchy,
    confinement::Access,
};
use crate::{folder::Folder, scratch::Scratch};

/// What keeps secrets from a command that may change the machine.
const GUARDING: &[Layer] =
    &[Layer::NoNewPrivileges, Layer::Capabilities, Layer::Seccomp, Layer::Landlock, Layer::Cgroup];

/// Why an executor that must be confined does not start.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// A layer was required.
    #[error("the sandbox layer `{layer}` is required and cannot be had: {why}")]
    Layer {
        /// Its name.
        layer: &'static str,
        /// What stands against it.
        why: String,
    },
    /// A level was required.
    #[error("the sandbox level `{wanted}` is required, and this machine has `{level}`: {why}")]
    Level {
        /// What was wanted.
        wanted: Level,
        /// What there is.
        level: Level,
        /// What stands against it.
        why: String,
    },
    /// It could not be found out what there is: too little is not taken for all.
    #[error("a command could not be tried in a sandbox: {0}")]
    Untried(#[source] io::Error),
    /// No private directory could be made.
    #[error("no directory for what commands write: {0}")]
    Base(#[from] io::Error),
}

/// The sandbox of one executor.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    setting: Setting,
    /// Of commands that see only programs, and of those that see the host.
    private: Layers,
    host: Layers,
    missing: BTreeMap<Layer, String>,
    hierarchy: Option<Hierarchy>,
    base: Scratch,
}

/// What one command gets, for as long as it runs.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) confinement: Confinement,
    pub(crate) level: Level,
    pub(crate) group: Option<Group>,
    /// Its private directory, where it is one of the host.
    _work: Option<Folder>,
}

impl Sandbox {
    /// Finds out what works. `attempt` starts a command without programs and says which layer refused.
    pub(crate) async fn probe<F>(
        setting: Setting,
        attempt: impl Fn(Confinement, Access) -> F,
    ) -> Result<Self, Unavailable>
    where
        F: Future<Output = io::Result<Result<(), Refused>>>,
    {
        let base = Scratch::new()?;
        let mut inner = Inner {
            setting,
            private: Layers::new(),
            host: Layers::new(),
            missing: BTreeMap::new(),
            hierarchy: None,
            base,
        };
        if inner.setting.minimum != Minimum::Off {
            let mut wanted: Layers = Layer::ALL.into_iter().collect();
            inner
                .setting
                .without
                .clone()
                .into_iter()
                .for_each(|layer| inner.drop(&mut wanted, layer, "it is switched off"));
            // Root needs no user namespace where it may do everything else.
            if geteuid().is_root() {
                wanted.remove(&Layer::UserNamespace);
            }
            match Hierarchy::find(inner.setting.cgroup.as_deref()) {
                Ok(hierarchy) => {
                    hierarchy.sweep();
                    inner.hierarchy = Some(hierarchy);
                }
                Err(error) => inner.drop(&mut wanted, Layer::Cgroup, &error.to_string()),
            }
            inner.private = inner.settle(View::Private, wanted, &attempt).await?;
            let mut for_host = inner.private.clone();
            for_host.remove(&Layer::Proc);
            // There, every owner but this one would look like nobody: not what someone who looks for faults should see.
            let carried =
                |layer: &Layer| *layer == Layer::Namespaces || Layer::Namespaces.carries().contains(layer);
            if for_host.contains(&Layer::UserNamespace)
                && inner.setting.minimum < Minimum::AtLeast(Level::FullNoproc)
                && !inner.setting.required.iter().any(carried)
            {
                for_host.retain(|layer| !carried(layer));
            }
            inner.host = inner.settle(View::Host, for_host, &attempt).await?;
        }
        inner.check()?;
        Ok(Self(Arc::new(inner)))
    }

    /// What a command of a model has at least.
    pub(crate) fn level(&self) -> Level {
        self.0.level()
    }

    /// Says in the log and the metrics what commands have, and what is missing.
    pub(crate) fn report(&self) {
        let names = |view| {
            let layers = self.0.available(view).iter().map(|layer| layer.name());
            layers.collect::<Vec<_>>().join(",")
        };
        let level = self.level();
        metrics::gauge!("sleuth_executor_sandbox", "level" => level.name()).set(1.0);
        tracing::info!(%level, host = names(View::Host), private = names(View::Private), "the sandbox of commands");
        for (layer, why) in &self.0.missing {
            tracing::info!(%layer, why, "a layer of the sandbox is missing");
        }
        if level == Level::None {
            tracing::warn!(
                "commands run without a sandbox: only the policy stands between a model and this machine"
            );
        }
    }

    /// The view of bash commands.
    pub(crate) fn view(&self) -> View {
        if self.0.setting.private_view { View::Private } else { View::Host }
    }

    /// Whether a gate is opened in a network of the command's own.
    pub(crate) fn separates_network(&self, view: View) -> bool {
        view.isolates() && self.0.available(view).contains(&Layer::Network)
    }

    /// The layers of a command with this access.
    pub(crate) fn layers_for(&self, access: &Access) -> Layers {
        self.0.layers_for(access)
    }

    /// Prepares a command.
    pub(crate) fn prepare(&self, access: &Access) -> io::Result<Prepared> {
        self.0.prepare(self.0.layers_for(access), access)
    }
}

impl Inner {
    /// The layers that a command with this view and access can be started with.
    async fn settle<F>(
        &mut self,
        view: View,
        wanted: Layers,
        attempt: &impl Fn(Confinement, Access) -> F,
    ) -> Result<Layers, Unavailable>
    where
        F: Future<Output = io::Result<Result<(), Refused>>>,
    {
        let mut layers = wanted;
        loop {
            let access = Access { view, network: Network::None, ..Access::default() };
            let refused = match self.prepare(layers.clone(), &access) {
                Ok(prepared) => {
                    let tried = attempt(prepared.confinement.clone(), access).await;
                    match tried.map_err(Unavailable::Untried)? {
                        Ok(()) => return Ok(layers),
                        Err(refused) => refused,
                    }
                }
                Err(error) if layers.contains(&Layer::Cgroup) => {
                    Refused { layer: Layer::Cgroup, why: error.to_string() }
                }
                Err(error) => return Err(error.into()),
            };
            // A process that is user 0 without its rights has them in a user namespace.
            if refused.layer == Layer::Namespaces
                && layers.insert(Layer::UserNamespace)
                && !self.setting.without.contains(&Layer::UserNamespace)
            {
                continue;
            }
            if !layers.contains(&refused.layer) {
                // Nothing that can be left out: the programs themselves do not start.
                return Ok(Layers::new());
            }
            self.drop(&mut layers, refused.layer, &refused.why);
        }
    }

    fn drop(&mut self, layers: &mut Layers, layer: Layer, why: &str) {
        layers.remove(&layer);
        self.missing.entry(layer).or_insert_with(|| why.to_owned());
        for carried in layer.carries().iter().filter(|carried| layers.remove(carried)) {
            self.missing.entry(*carried).or_insert_with(|| format!("it needs `{layer}`"));
        }
    }

    fn check(&self) -> Result<(), Unavailable> {
        for layer in &self.setting.required {
            // The host's /proc is part of its view.
            let for_host = *layer == Layer::Proc || self.host.contains(layer);
            if !self.private.contains(layer) || !for_host {
                let why =
                    self.missing.get(layer).cloned().unwrap_or_else(|| "it is not used here".to_owned());
                return Err(Unavailable::Layer { layer: layer.name(), why });
            }
        }
        if let Minimum::AtLeast(wanted) = self.setting.minimum
            && self.level() < wanted
        {
            let missing: Vec<_> = self.missing.iter().map(|(layer, why)| format!("{layer}: {why}")).collect();
            return Err(Unavailable::Level { wanted, level: self.level(), why: missing.join("; ") });
        }
        Ok(())
    }

    fn level(&self) -> Level {
        let of = |view| Level::of(self.available(view), view);
        of(View::Private).min(of(View::Host))
    }

    fn available(&self, view: View) -> &Layers {
        match view {
            View::Private => &self.private,
            View::Host | View::Approved | View::Operator => &self.host,
        }
    }

    fn layers_for(&self, access: &Access) -> Layers {
        let mut layers = self.available(access.view).clone();
        let only = |wanted: &[Layer]| wanted.iter().copied().filter(|own| layers.contains(own)).collect();
        match access.view {
            View::Private | View::Host => {}
            // In a user namespace, every owner but one would look like nobody.
            View::Approved if layers.contains(&Layer::UserNamespace) => return only(GUARDING),
            View::Approved => return only(&[GUARDING, &[Layer::Root]].concat()),
            View::Operator => return only(&[Layer::NoNewPrivileges, Layer::Cgroup]),
        }
        let mut without = |unwanted: &[Layer]| layers.retain(|layer| !unwanted.contains(layer));
        // The host's sockets and routes are part of its view: there, sockets are refused instead.
        match (access.network, access.view) {
            (Network::Host, _) => without(&[Layer::Network, Layer::LandlockTcp]),
            (Network::None, View::Host) => without(&[Layer::Network]),
            (Network::None | Network::Gate(_), _) => {}
        }
        layers
    }

    fn prepare(&self, layers: Layers, access: &Access) -> io::Result<Prepared> {
        let name = uuid::Uuid::now_v7().simple().to_string();
        let group = match &self.hierarchy {
            Some(hierarchy) if layers.contains(&Layer::Cgroup) => {
                Some(hierarchy.group(&name, self.setting.limits)?)
            }
            _ => None,
        };
        let needs_directory =
            !layers.contains(&Layer::Root) && (access.view != View::Operator || !access.files.is_empty());
        let work = if needs_directory { Some(Folder::make(self.base.path(), "w-")?) } else { None };
        let confinement = Confinement {
            base: self.base.path().to_owned(),
            work: work.as_ref().map(|work| work.path().to_owned()),
            hidden: self.setting.hidden.clone(),
            groups: group.as_ref().map(|group| group.directories.clone()).unwrap_or_default(),
            processes: self.setting.limits.processes,
            layers,
        };
        let level = Level::of(&confinement.layers, access.view);
        Ok(Prepared { confinement, level, group, _work: work })
    }
}
