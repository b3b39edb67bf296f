//! System calls that no command of a tool needs, refused.

use std::{collections::BTreeMap, env::consts::ARCH};

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

use super::{Access, Network, View};

/// Refused whatever their arguments.
const REFUSED: &[i64] = &[
    // Mounts and roots
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    // Namespaces
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Memory and queues that outlive a command where it has no such namespace of its own
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    // The kernel and the machine
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_vhangup,
    libc::SYS_personality,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Those that set something for a process, and which argument names it.
const OF_PROCESSES: &[(i64, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// Flags of `clone` that make namespaces.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// Why no filter could be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no filter for {ARCH}: {0}")]
    Filter(#[from] seccompiler::BackendError),
    #[error(transparent)]
    Apply(#[from] seccompiler::Error),
}

/// Filters all system calls of this process and its children from here on.
pub(super) fn apply(access: &Access) -> Result<(), Error> {
    apply_filter(&absent())?;
    apply_filter(&refused(access)?)?;
    Ok(())
}

/// Calls that fail as if this kernel did not have them. For `clone3`, whose flags a filter cannot see, the C
/// library then uses `clone`; numbers from x32's on are another way to make every call.
fn absent() -> Vec<sock_filter> {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const CLONE3: u32 = libc::SYS_clone3 as u32;
    const X32: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 1, 0, CLONE3),
        step(JUMP_IF_AT_LEAST, 0, 1, X32),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
        step(RETURN, 0, 0, ALLOW),
    ]
}

fn refused(access: &Access) -> Result<BpfProgram, seccompiler::BackendError> {
    let network = access.network;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    let mut when = |call: i64, conditions: Vec<SeccompCondition>| {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<_, seccompiler::BackendError>(())
    };
    for bit in bits(NAMESPACES) {
        when(libc::SYS_clone, vec![masked(0, bit, bit)?])?;
    }
    // Limits and priorities of other processes: 0 is the caller itself.
    for (call, process) in OF_PROCESSES.iter().filter(|_| access.view.isolates()) {
        when(*call, vec![SeccompCondition::new(*process, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?])?;
    }
    // Devices; pipes, sockets and plain files may be made where files may.
    for kind in [libc::S_IFCHR, libc::S_IFBLK] {
        let format = u64::from(libc::S_IFMT);
        #[cfg(target_arch = "x86_64")]
        when(libc::SYS_mknod, vec![masked(1, format, u64::from(kind))?])?;
        when(libc::SYS_mknodat, vec![masked(2, format, u64::from(kind))?])?;
    }
    // Typing into a terminal that is not its own.
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        when(libc::SYS_ioctl, vec![masked(1, 0xffff_ffff, request)?])?;
    }
    // The kernel's log is read, not cleared.
    for action in [0, 1, 4, 5, 6, 7, 8] {
        when(libc::SYS_syslog, vec![equal(0, action)?])?;
    }
    for conditions in sockets(access)? {
        when(libc::SYS_socket, conditions)?;
    }
    if network != Network::Host {
        // Sends that connect on their own, past Landlock's check of `connect`.
        let open = libc::MSG_FASTOPEN as u64;
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            when(call, vec![masked(flags, open, open)?])?;
        }
    }
    let errno = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, errno, ARCH.try_into()?)?.try_into()
}

/// The families of sockets that fail: all but those that are needed. Netlink shows the state of the network, and
/// changes nothing without capabilities.
fn sockets(access: &Access) -> Result<Vec<Vec<SeccompCondition>>, seccompiler::BackendError> {
    let network = access.network;
    let internet = [libc::AF_INET, libc::AF_INET6];
    let mut allowed = vec![libc::AF_NETLINK];
    if access.local_sockets || network == Network::Host {
        allowed.push(libc::AF_UNIX);
    }
    if access.view == View::Approved {
        allowed.push(libc::AF_PACKET);
    }
    if network != Network::None {
        allowed.extend(internet);
    }
    let others = allowed
        .iter()
        .map(|family| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *family as u64));
    let mut refused = vec![others.collect::<Result<Vec<_>, _>>()?];
    if let Network::Gate(_) = network {
        // No datagrams: nothing but TCP is gated.
        for (family, kind) in
            internet.into_iter().flat_map(|it| [(it, libc::SOCK_DGRAM), (it, libc::SOCK_RAW)])
        {
            refused.push(vec![equal(0, family as u64)?, masked(1, 0xf, kind as u64)?]);
        }
    }
    Ok(refused)
}

fn bits(set: u64) -> impl Iterator<Item = u64> {
    (0..u64::BITS).map(|bit| 1 << bit).filter(move |bit| set & bit != 0)
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)
}
