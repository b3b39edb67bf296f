//! Capabilities and identity: what is left of the executor's own rights.

use std::io;

use rustix::{
    process::{Gid, Uid, geteuid},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
        clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
        set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    },
};

/// The user that owns nothing.
pub(super) const NOBODY: u32 = 65534;

/// What user 0 keeps to see the host: logs that belong to others, and the kernel's own.
pub(super) const TO_READ: CapabilitySet = CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::SYSLOG);

/// What user 0 keeps to change the machine: files, processes, users and the network. Not what would lead it to other
/// processes' memory, to disks or into the kernel.
pub(super) const TO_CHANGE: CapabilitySet = TO_READ
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::SYS_RESOURCE);

/// Becomes a user that owns nothing, if this one is user 0.
pub(super) fn become_nobody() -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Bounds what programs can get to `kept`. User 0 gets exactly that, every other user nothing.
pub(super) fn bound(kept: CapabilitySet) -> io::Result<()> {
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().difference(kept).iter() {
        // Beyond the last one that the kernel knows, the question is an error.
        if capability_is_in_bounding_set(capability).unwrap_or(false)
            && let Err(error) = remove_capability_from_bounding_set(capability)
            && geteuid().is_root()
        {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Gives up every other capability of this process. Without new privileges, its programs cannot get them back.
pub(super) fn give_up_all_but(kept: CapabilitySet) -> io::Result<()> {
    let kept = capabilities(None)?.permitted.intersection(kept);
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })?;
    Ok(())
}
