//! The order in which a launcher applies the layers: first the one process that stays outside, then the one within
//! that becomes the parent of the programs.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
        net::UnixStream,
    },
    path::PathBuf,
};

use rustix::{
    fs::{Gid, Uid, chown},
    process::{DumpableBehavior, geteuid, set_dumpable_behavior},
    thread::CapabilitySet,
};
use serde::{Deserialize, Serialize};

use super::{
    Confinement, Layer, Network, View,
    confinement::{Access, Placed},
    gate, hidden, landlock, namespaces, privileges, rlimits, root, seccomp,
};

/// A layer that was asked for and could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the sandbox layer `{layer}` could not be applied: {why}")]
pub(crate) struct Refused {
    pub(crate) layer: Layer,
    pub(crate) why: String,
}

/// What programs are told of the place where they run.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) work: Option<PathBuf>,
    /// Where programs start.
    pub(crate) start: Option<PathBuf>,
    pub(crate) variables: Vec<(String, OsString)>,
}

fn layer(layer: Layer) -> impl FnOnce(io::Error) -> Refused {
    move |error| Refused { layer, why: error.to_string() }
}

/// Outside: the namespaces of the process that will be within.
pub(crate) fn separate(confinement: &Confinement) -> Result<(), Refused> {
    let network = confinement.has(Layer::Network);
    if confinement.has(Layer::Namespaces) {
        namespaces::enter(confinement.has(Layer::UserNamespace), network)
            .map_err(layer(Layer::Namespaces))?;
    }
    if network {
        gate::loopback_up().map_err(layer(Layer::Network))?;
    }
    conceal().map_err(layer(Layer::Namespaces))
}

/// Outside: the gate in the network of the process within, passed to the other end of `control`.
pub(crate) fn open_gate(
    confinement: &Confinement,
    access: &Access,
    control: &UnixStream,
) -> Result<(), Refused> {
    match access.network {
        Network::Gate(port) if confinement.has(Layer::Network) => {
            gate::pass(port, control).map_err(layer(Layer::Network))
        }
        Network::Gate(_) | Network::None | Network::Host => Ok(()),
    }
}

/// Within: the limits of the whole tree.
pub(crate) fn join(confinement: &Confinement) -> Result<(), Refused> {
    let mut groups = confinement.groups.iter();
    groups.try_for_each(|group| fs::write(group.join("cgroup.procs"), "0")).map_err(layer(Layer::Cgroup))
}

/// Within: everything else, the strictest last.
pub(crate) fn enter(confinement: &Confinement, access: &Access) -> Result<Place, Refused> {
    // User 0 stays itself only to see what the host shows to no other, and where files are the executor's.
    let drops = access.view == View::Private
        && access.workspace.is_none()
        && geteuid().is_root()
        && confinement.has(Layer::Capabilities)
        && confinement.has(Layer::Root)
        && !confinement.has(Layer::UserNamespace);
    let owner = if drops { privileges::NOBODY } else { geteuid().as_raw() };
    let hidden = match access.view {
        View::Host | View::Approved => hidden::existing(&confinement.hidden, &confinement.base),
        View::Private | View::Operator => Vec::new(),
    };
    let readable = readable(confinement, access.view, &hidden);
    let work = build_root(confinement, access, owner, &hidden)?;
    let start = access.workspace.clone();
    let given = access.variables.iter().map(|own| (own.name.clone(), OsString::from(&own.value)));
    let variables = place(&access.files, work.as_ref(), owner)?.into_iter().chain(given).collect();
    let place = Place { variables, work, start };

    let kept = match access.view {
        View::Private | View::Operator => CapabilitySet::empty(),
        View::Host => privileges::TO_READ,
        View::Approved => privileges::TO_CHANGE,
    };
    if confinement.has(Layer::Capabilities) {
        privileges::bound(kept).map_err(layer(Layer::Capabilities))?;
    }
    if confinement.has(Layer::Landlock) {
        let writable: Vec<_> = place.work.iter().chain(&place.start).map(AsRef::as_ref).collect();
        let tcp = if confinement.has(Layer::LandlockTcp) { access.network } else { Network::Host };
        let restricted = match access.view {
            View::Approved => landlock::guard(&readable, &writable),
            View::Private | View::Host | View::Operator => landlock::restrict(&readable, &writable, tcp),
        };
        restricted.map_err(|error| Refused { layer: error.layer(), why: error.to_string() })?;
    }
    if confinement.has(Layer::Rlimits) {
        // Elsewhere they would be counted together with what others do as the same user.
        let counted = confinement.has(Layer::UserNamespace) || (drops && !confinement.has(Layer::Cgroup));
        rlimits::lower(counted.then_some(confinement.processes)).map_err(layer(Layer::Rlimits))?;
    }
    if drops {
        privileges::become_nobody().map_err(layer(Layer::Capabilities))?;
    }
    if confinement.has(Layer::Capabilities) {
        privileges::give_up_all_but(kept).map_err(layer(Layer::Capabilities))?;
    }
    conceal().map_err(layer(Layer::Capabilities))?;
    if confinement.has(Layer::Seccomp) {
        seccomp::apply(access).map_err(|error| Refused { layer: Layer::Seccomp, why: error.to_string() })?;
    }
    Ok(place)
}

/// Keeps programs of the same user from reading and writing this process.
fn conceal() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

fn readable(confinement: &Confinement, view: View, hidden: &[PathBuf]) -> Vec<PathBuf> {
    match view {
        View::Private => [root::private_sources(), vec!["/proc".into()]].concat(),
        View::Host | View::Approved if confinement.has(Layer::Root) => vec!["/".into()],
        View::Host | View::Approved => {
            let devices = PathBuf::from("/dev");
            hidden::all_but("/".as_ref(), &[hidden, &[devices, confinement.base.clone()]].concat())
        }
        View::Operator => vec!["/".into()],
    }
}

fn build_root(
    confinement: &Confinement,
    access: &Access,
    owner: u32,
    hidden: &[PathBuf],
) -> Result<Option<PathBuf>, Refused> {
    if !confinement.has(Layer::Root) {
        return Ok(confinement.work.clone());
    }
    let proc = confinement.has(Layer::Proc);
    let workspace = access.workspace.as_deref();
    let built = match access.view {
        View::Private => root::private(&confinement.base, owner, proc, workspace),
        View::Host => root::host(&confinement.base, owner, hidden, workspace),
        View::Approved => root::guarded(&confinement.base, owner, hidden),
        View::Operator => return Ok(confinement.work.clone()),
    };
    built.map(Some).map_err(|error| {
        let missing = if error.kind() == io::ErrorKind::Unsupported { Layer::Proc } else { Layer::Root };
        layer(missing)(error)
    })
}

fn place(files: &[Placed], work: Option<&PathBuf>, owner: u32) -> Result<Vec<(String, OsString)>, Refused> {
    let Some(work) = work else { return Ok(Vec::new()) };
    let write = |file: &Placed| {
        let path = work.join(&file.name);
        match &file.content {
            None => fs::DirBuilder::new().mode(0o700).create(&path)?,
            Some(content) => {
                let mut options = fs::OpenOptions::new();
                let mut opened = options.create_new(true).write(true).mode(0o600).open(&path)?;
                io::Write::write_all(&mut opened, content.as_bytes())?;
            }
        }
        chown(&path, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
        Ok((file.variable.clone(), path.into_os_string()))
    };
    files.iter().map(write).collect::<io::Result<_>>().map_err(layer(Layer::Root))
}
