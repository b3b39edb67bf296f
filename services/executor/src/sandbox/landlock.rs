//! Landlock: the kernel's own list of what this process and its children may do, whatever they are or become.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
    Scope,
};

use rustix::fs::{FileType, fstat};

use super::{Layer, Network};

/// The newest rights that are handled; an older kernel knows fewer.
const NEWEST: ABI = ABI::V6;
/// Devices that are no way out.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// The kernel's log, to read.
const KERNEL_LOG: &str = "/dev/kmsg";

/// Why it could not be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the kernel has no Landlock, or it is off")]
    Absent,
    #[error("the kernel has no rules for TCP: {0}")]
    Tcp(RulesetError),
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
}

impl Error {
    pub(super) fn layer(&self) -> Layer {
        match self {
            Self::Tcp(_) => Layer::LandlockTcp,
            Self::Absent | Self::Ruleset(_) => Layer::Landlock,
        }
    }
}

/// Leaves the right to read below `readable`, to change what is in `writable`, and to reach by TCP what `network` says.
/// Signals and abstract sockets end at the border where the kernel can do that.
pub(super) fn restrict(readable: &[PathBuf], writable: &[&Path], network: Network) -> Result<(), Error> {
    let mut rules =
        Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    if network != Network::Host {
        let strict = rules.set_compatibility(CompatLevel::HardRequirement);
        let strict = strict.handle_access(AccessNet::from_all(NEWEST)).map_err(Error::Tcp)?;
        rules = strict.set_compatibility(CompatLevel::BestEffort);
    }
    let read = AccessFs::from_read(NEWEST);
    let both = AccessFs::ReadFile | AccessFs::WriteFile;
    let mut rules = allow(rules.create()?, Path::new("/"), AccessFs::ReadDir.into())?;
    for place in readable {
        rules = allow(rules, place, read)?;
    }
    for device in DEVICES {
        rules = allow(rules, Path::new(device), both)?;
    }
    rules = allow(rules, Path::new(KERNEL_LOG), AccessFs::ReadFile.into())?;
    let everything = AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for place in writable {
        rules = allow(rules, place, everything)?;
    }
    if let Network::Gate(port) = network {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(Error::Absent),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Allows `access` below a place. One that is not there, or cannot be entered, needs no rule.
fn allow(
    rules: RulesetCreated,
    place: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(fd) = PathFd::new(place) else { return Ok(rules) };
    // Rights that only directories have are an error on files.
    let is_folder =
        fstat(&fd).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Directory);
    let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
    if access.is_empty() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(fd, access))
}
