//! The tree of files that a command sees: read-only, without secrets, with a private directory.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, open},
    mount::{
        MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_move, mount_remount, unmount,
    },
    process::{chdir, pivot_root},
};

use super::{mounts, namespaces};

/// What the private directory holds at most.
const WORK_BYTES: u64 = 64 << 20;
/// The private directory of a private tree.
const WORK: &str = "/work";
/// The devices of a command, and that there is one for the kernel's log.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
const KERNEL_LOG: &str = "kmsg";
/// What programs of a machine share with each other: memory, terminals, and the way to its log.
const SHARED_DEVICES: &[&str] = &["shm", "pts", "log"];

/// What a private tree has of the host's: programs, libraries, and what these need to work.
const PRIVATE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/ssl/certs",
    "/etc/terminfo",
    "/etc/timezone",
];

/// What of the host a private tree shows: the list, and where programs are looked for.
pub(super) fn private_sources() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let listed = PRIVATE.iter().map(PathBuf::from);
    let searched = std::env::split_paths(&path).filter(|place| place.is_absolute());
    let mut sources: Vec<_> = listed.chain(searched).filter(|place| place.exists()).collect();
    sources.sort();
    sources.dedup_by(|inner, outer| inner.starts_with(outer));
    sources
}

/// Leaves the host's tree for a new one above `base`. Returns the private directory, which belongs to `owner`.
pub(super) fn private(base: &Path, owner: u32, proc: bool, workspace: Option<&Path>) -> io::Result<PathBuf> {
    namespaces::own_mounts()?;
    namespaces::own_names()?;
    let workspace = workspace.map(Kept::open).transpose()?;
    scratch(base, "mode=755")?;
    for source in private_sources() {
        unless_gone(show(&source, base))?;
    }
    let devices = base.join("dev");
    make_devices(&devices, DEVICES)?;
    symlink(WORK, base.join("tmp"))?;
    let (at_proc, work) = (base.join("proc"), base.join(&WORK[1..]));
    fs::create_dir(&at_proc)?;
    fs::create_dir(&work)?;
    if proc {
        // On its own file system, so that it is a real mount: sealing makes it read-only like all others.
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", &at_proc, "proc", flags, c"subset=pid")
            .map_err(|error| io::Error::new(io::ErrorKind::Unsupported, format!("/proc: {error}")))?;
    }
    if let Some(workspace) = &workspace {
        fs::create_dir_all(below(base, workspace.path))?;
    }
    mounts::seal(base, &devices)?;
    make_work(&work, owner)?;
    if let Some(workspace) = &workspace {
        workspace.show(&below(base, workspace.path))?;
    }
    chdir(base)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    Ok(WORK.into())
}

/// Makes the host's tree read-only, with nothing at the `hidden` places but the way to the workspace. Returns the
/// private directory, at `base`.
pub(super) fn host(
    base: &Path,
    owner: u32,
    hidden: &[PathBuf],
    workspace: Option<&Path>,
) -> io::Result<PathBuf> {
    namespaces::own_mounts()?;
    namespaces::own_names()?;
    let workspace = workspace.map(Kept::open).transpose()?;
    scratch(base, "mode=755")?;
    let cover = Cover::make(base)?;
    let (way, devices) = (base.join("way"), base.join("dev"));
    for place in hidden {
        let leads_there = workspace.as_ref().and_then(|kept| kept.path.strip_prefix(place).ok());
        if let Some(rest) = leads_there {
            fs::create_dir_all(way.join(rest))?;
            mount_bind(&way, place)?;
        } else {
            unless_gone(cover.put_over(place))?;
        }
    }
    fs::create_dir(&devices)?;
    scratch(&devices, "mode=755")?;
    make_devices(&devices, &[DEVICES, &[KERNEL_LOG]].concat())?;
    mount_move(&devices, "/dev")?;
    mounts::seal(Path::new("/"), Path::new("/dev"))?;
    make_work(base, owner)?;
    if let Some(workspace) = &workspace {
        workspace.show(workspace.path)?;
    }
    chdir("/")?;
    Ok(base.to_owned())
}

/// Leaves the host's tree as it is, but for nothing at the `hidden` places, where nothing can be put either, and no
/// devices that lead to memory or to disks. Returns the private directory, at `base`.
pub(super) fn guarded(base: &Path, owner: u32, hidden: &[PathBuf]) -> io::Result<PathBuf> {
    namespaces::own_mounts()?;
    scratch(base, "mode=755")?;
    let cover = Cover::make(base)?;
    let devices = base.join("dev");
    make_devices(&devices, &[DEVICES, &[KERNEL_LOG]].concat())?;
    for shared in SHARED_DEVICES {
        unless_gone(show(&Path::new("/dev").join(shared), base))?;
    }
    // Every mount that is made of it is read-only too.
    mount_remount(base, MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID, c"")?;
    for place in hidden {
        unless_gone(cover.put_over(place))?;
    }
    mount_bind_recursive(&devices, "/dev")?;
    make_work(base, owner)?;
    chdir("/")?;
    Ok(base.to_owned())
}

/// What is mounted over secrets: nobody can read it.
struct Cover {
    folder: PathBuf,
    file: PathBuf,
}

impl Cover {
    fn make(base: &Path) -> io::Result<Self> {
        let cover = Self { folder: base.join("folder"), file: base.join("file") };
        fs::DirBuilder::new().mode(0o000).create(&cover.folder)?;
        fs::OpenOptions::new().create_new(true).write(true).mode(0o000).open(&cover.file)?;
        Ok(cover)
    }

    fn put_over(&self, place: &Path) -> io::Result<()> {
        let cover = if fs::symlink_metadata(place)?.is_dir() { &self.folder } else { &self.file };
        Ok(mount_bind(cover, place)?)
    }
}

/// The host goes on meanwhile: what is not there any more needs nothing.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// A directory of the host, held while the tree around it changes.
struct Kept<'a> {
    path: &'a Path,
    directory: OwnedFd,
}

impl<'a> Kept<'a> {
    fn open(path: &'a Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self { path, directory: open(path, flags, Mode::empty())? })
    }

    /// Shows it at a place, to be changed.
    fn show(&self, at: &Path) -> io::Result<()> {
        mount_bind(format!("/proc/self/fd/{}", self.directory.as_raw_fd()), at)?;
        mounts::unseal(at)
    }
}

fn below(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

fn scratch(at: &Path, options: &str) -> io::Result<()> {
    tmpfs(at, MountFlags::NOSUID, &format!("size=1m,nr_inodes=4096,{options}"))
}

fn make_work(at: &Path, owner: u32) -> io::Result<()> {
    let options = format!("size={WORK_BYTES},nr_inodes=16384,mode=700,uid={owner},gid={owner}");
    tmpfs(at, MountFlags::NOSUID | MountFlags::NODEV, &options)
}

fn tmpfs(at: &Path, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(mount("sleuth", at, "tmpfs", flags, options.as_c_str())?)
}

/// Shows a file or directory of the host at the same path below `base`.
fn show(source: &Path, base: &Path) -> io::Result<()> {
    let at = base.join(source.strip_prefix("/").unwrap_or(source));
    if let Some(parent) = at.parent() {
        fs::create_dir_all(parent)?;
    }
    let kind = fs::symlink_metadata(source)?.file_type();
    if kind.is_symlink() && source.parent() == Some(Path::new("/")) {
        return symlink(fs::read_link(source)?, at);
    }
    if fs::metadata(source)?.is_dir() {
        fs::create_dir_all(&at)?;
    } else {
        fs::File::create(&at)?;
    }
    Ok(mount_bind_recursive(source, &at)?)
}

fn make_devices(at: &Path, names: &[&str]) -> io::Result<()> {
    fs::create_dir_all(at)?;
    for name in names {
        let (from, to) = (Path::new("/dev").join(name), at.join(name));
        if from.exists() {
            fs::File::create(&to)?;
            unless_gone(mount_bind(&from, &to).map_err(Into::into))?;
        }
    }
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        symlink(["/proc/self/fd", target].concat(), at.join(name))?;
    }
    fs::create_dir(at.join("shm"))
}
