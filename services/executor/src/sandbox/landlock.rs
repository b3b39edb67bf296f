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
    enforced(rules)
}

fn enforced(rules: RulesetCreated) -> Result<(), Error> {
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(Error::Absent),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Leaves every right but to read elsewhere than below `readable`, to make devices, to change mounts, and to look into
/// processes beyond the border.
pub(super) fn guard(readable: &[PathBuf], writable: &[&Path]) -> Result<(), Error> {
    let read = AccessFs::ReadFile | AccessFs::Refer;
    let handled = read | AccessFs::MakeChar | AccessFs::MakeBlock;
    let mut rules = Ruleset::default().handle_access(handled)?.create()?;
    for place in readable.iter().map(PathBuf::as_path).chain(writable.iter().copied()) {
        rules = allow(rules, place, read)?;
    }
    for device in DEVICES.iter().chain([&KERNEL_LOG]) {
        rules = allow(rules, Path::new(device), read)?;
    }
    enforced(rules)
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
