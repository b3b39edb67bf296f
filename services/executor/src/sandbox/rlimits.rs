//! Limits of each process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The longest file. The private directory has a smaller bound of its own where it is a mount.
const FILE_BYTES: u64 = 256 << 20;
/// Memory that one process may write to. Not the address space: programs in Go reserve far more than they use.
const DATA_BYTES: u64 = 4 << 30;

/// Lowers the limits; `processes` too where they are counted for this command alone.
pub(super) fn lower(processes: Option<u64>) -> io::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, FILE_BYTES),
        (Resource::Data, DATA_BYTES),
        (Resource::Nofile, 4096),
        (Resource::Memlock, 64 << 10),
        (Resource::Msgqueue, 0),
        (Resource::Sigpending, 1024),
    ];
    for (resource, limit) in limits.into_iter().chain(processes.map(|own| (Resource::Nproc, own))) {
        let now = getrlimit(resource);
        let limit = now.maximum.map_or(limit, |hard| hard.min(limit));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}
