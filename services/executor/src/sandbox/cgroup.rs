//! Control groups: memory, processes and processor time of a whole tree, whatever it forks.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::mounts;
use crate::scratch;

/// How the names of groups begin.
const PREFIX: &str = "sleuth-";
/// Microseconds over which processor time is shared out.
const PERIOD: u64 = 100_000;
/// How often, and with which pause, a group is removed whose last process is just ending.
const TRIES: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);

/// What a tree may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) memory: u64,
    pub(crate) processes: u64,
    pub(crate) cpus: u64,
}

/// Where groups can be made: one directory for all controllers, or one for each.
#[derive(Clone, Debug)]
pub(super) enum Hierarchy {
    Unified(PathBuf),
    Separate { memory: PathBuf, pids: PathBuf, cpu: PathBuf },
}

impl Hierarchy {
    /// The executor's own group, or a directory that the operator names.
    pub(super) fn find(named: Option<&Path>) -> io::Result<Self> {
        if let Some(directory) = named {
            return Self::unified(directory.to_owned());
        }
        let (own, mounts) = (fs::read_to_string("/proc/self/cgroup")?, mounts::all()?);
        let at = |controller: &str| directory(controller, &own, &mounts);
        match (at("memory"), at("pids"), at("cpu")) {
            (Some(memory), Some(pids), Some(cpu)) => Ok(Self::Separate { memory, pids, cpu }),
            _ => Self::unified(at("").ok_or(io::ErrorKind::NotFound)?),
        }
    }

    fn unified(directory: PathBuf) -> io::Result<Self> {
        // Refused where the directory has processes of its own; then it may be on already.
        let _ = fs::write(directory.join("cgroup.subtree_control"), "+memory +pids +cpu");
        let on = fs::read_to_string(directory.join("cgroup.subtree_control"))?;
        if ["memory", "pids", "cpu"]
            .iter()
            .all(|controller| on.split_whitespace().any(|own| own == *controller))
        {
            return Ok(Self::Unified(directory));
        }
        let why = format!("no memory, pids and cpu controllers for groups in {}", directory.display());
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Removes the groups that killed executors left. One in which something runs cannot be removed.
    pub(super) fn sweep(&self) {
        let parents = match self {
            Self::Unified(parent) => vec![parent],
            Self::Separate { memory, pids, cpu } => vec![memory, pids, cpu],
        };
        for left in parents.into_iter().flat_map(|parent| scratch::left(parent, PREFIX)) {
            let _ = fs::remove_dir(left);
        }
    }

    /// Makes a group with limits.
    pub(super) fn group(&self, name: &str, limits: Limits) -> io::Result<Group> {
        let name = &[PREFIX, name].concat();
        let quota = limits.cpus * PERIOD;
        let (memory, processes) = (limits.memory.to_string(), limits.processes.to_string());
        let mut group = Group { directories: Vec::new() };
        match self {
            Self::Unified(parent) => {
                let quota = format!("{quota} {PERIOD}");
                let own = group.add(parent, name)?;
                fs::write(own.join("memory.max"), memory)?;
                // Missing where there is no swap.
                let _ = fs::write(own.join("memory.swap.max"), "0");
                fs::write(own.join("pids.max"), processes)?;
                fs::write(own.join("cpu.max"), quota)?;
            }
            Self::Separate { memory: of_memory, pids, cpu } => {
                fs::write(group.add(of_memory, name)?.join("memory.limit_in_bytes"), memory)?;
                fs::write(group.add(pids, name)?.join("pids.max"), processes)?;
                let cpu = group.add(cpu, name)?;
                fs::write(cpu.join("cpu.cfs_period_us"), PERIOD.to_string())?;
                fs::write(cpu.join("cpu.cfs_quota_us"), quota.to_string())?;
            }
        }
        Ok(group)
    }
}

/// Where this process's group of a controller is; the unified hierarchy has an empty name.
fn directory(controller: &str, own: &str, mounts: &[mounts::Mount]) -> Option<PathBuf> {
    let mut lines = own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let path = lines.find(|(names, _)| names.split(',').any(|name| name == controller))?.1;
    let (kind, option) = if controller.is_empty() { ("cgroup2", None) } else { ("cgroup", Some(controller)) };
    let mount = mounts.iter().find(|mount| {
        mount.kind == kind && option.is_none_or(|own| mount.options.split(',').any(|option| option == own))
    })?;
    Some(mount.at.join(Path::new(path).strip_prefix(&mount.root).ok()?))
}

/// A group of one command. Dropping it ends what is left in it, and removes it.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) directories: Vec<PathBuf>,
}

impl Group {
    fn add(&mut self, parent: &Path, name: &str) -> io::Result<PathBuf> {
        let own = parent.join(name);
        match fs::create_dir(&own) {
            Ok(()) => self.directories.push(own.clone()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.directories.contains(&own) => {
            }
            Err(error) => return Err(error),
        }
        Ok(own)
    }

    /// Whether the kernel killed something in it for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let killed = |file: PathBuf| {
            let text = fs::read_to_string(file).unwrap_or_default();
            text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count != "0"))
        };
        self.directories
            .iter()
            .any(|own| killed(own.join("memory.events")) || killed(own.join("memory.oom_control")))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let directories = std::mem::take(&mut self.directories);
        for own in &directories {
            // Only the unified hierarchy has it.
            let _ = fs::write(own.join("cgroup.kill"), "1");
        }
        let remove = move || {
            for own in directories {
                let gone = || fs::remove_dir(&own).is_ok() || !own.exists();
                for _ in 0..TRIES {
                    if gone() {
                        break;
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        };
        // The last process of a group leaves it a moment after it was seen to end: nobody waits for that.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_below_where_its_hierarchy_is_mounted() {
        let own = "4:memory:/pod/box\n3:cpu,cpuacct:/pod/box\n0::/pod/box\n";
        let mounts = [
            "30 25 0:1 /pod /cg/memory rw - cgroup cgroup rw,memory",
            "31 25 0:2 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct",
            "32 25 0:3 / /cg/unified rw - cgroup2 cgroup2 rw",
        ];
        let mounts = mounts.map(|line| mounts::read(line.as_bytes()).unwrap());
        for (controller, expected) in [
            ("memory", Some("/cg/memory/box")),
            ("cpu", Some("/cg/cpu/pod/box")),
            ("", Some("/cg/unified/pod/box")),
            ("pids", None),
        ] {
            assert_eq!(directory(controller, own, &mounts), expected.map(PathBuf::from), "{controller}");
        }
    }
}
