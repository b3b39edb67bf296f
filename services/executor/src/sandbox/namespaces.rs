//! Namespaces: processes, and where it is wanted the network, of its own.

use std::{fs, io};

use nix::sched::{CloneFlags, unshare};
use rustix::{
    mount::{MountPropagationFlags, mount_change},
    process::{getgid, getuid},
    thread::{CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities},
};

/// What the inner process needs to mount, to drop its bounding set, and nothing else.
const NEEDED: [CapabilitySet; 2] = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];

/// Gives the children of this process a process namespace, and this process what else is asked for.
pub(super) fn enter(user: bool, network: bool) -> io::Result<()> {
    let (uid, gid) = (getuid(), getgid());
    let mut flags = CloneFlags::CLONE_NEWPID;
    flags.set(CloneFlags::CLONE_NEWUSER, user);
    flags.set(CloneFlags::CLONE_NEWNET, network);
    unshare(flags)?;
    if user {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
        hand_down()?;
    }
    Ok(())
}

/// Mounts of this process's own, of which others see no change.
pub(super) fn own_mounts() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Names of the machine and shared memory of this process's own.
pub(super) fn own_names() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS)?;
    Ok(())
}

/// Makes the next program keep what it needs: only user 0 would keep it anyway.
fn hand_down() -> io::Result<()> {
    let needed = NEEDED.into_iter().collect::<CapabilitySet>();
    let sets = CapabilitySets { effective: needed, permitted: needed, inheritable: needed };
    set_capabilities(None, sets)?;
    for capability in NEEDED {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
