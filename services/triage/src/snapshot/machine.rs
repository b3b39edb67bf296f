//! The machine that the tools run on, in numbers.

use crate::{
    evidence::{Evidence, Fetched},
    look::host,
};

/// From here on a memory file system counts.
const FULL: u32 = 97;

/// A line of `df -P`.
#[derive(Clone, Debug)]
pub(crate) struct FileSystem<'a> {
    /// Percent in use.
    pub(crate) used: u32,
    pub(crate) mount: &'a str,
    pub(crate) line: &'a str,
}

impl<'a> FileSystem<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let device = words.next()?;
        let used = words.nth(3)?.strip_suffix('%')?.parse().ok()?;
        let mount = line.get(line.rfind(" /")? + 1..)?;
        // images that are full by nature, and what has no disk of its own
        let is_image = ["/dev/loop", "squashfs", "iso9660"].iter().any(|start| device.starts_with(start))
            || ["/snap/", "/media/", "/sys/", "/proc/"].iter().any(|start| mount.starts_with(start));
        let is_memory = ["tmpfs", "devtmpfs", "udev", "shm"].contains(&device) && used < FULL;
        (!is_image && !is_memory).then_some(Self { used, mount, line })
    }
}

/// The file systems that `df` lists, the fullest first.
pub(crate) fn file_systems(fetched: &Fetched) -> Vec<FileSystem<'_>> {
    let mut all: Vec<_> = fetched.lines().filter_map(FileSystem::read).collect();
    all.sort_by_key(|system| std::cmp::Reverse(system.used));
    all
}

/// Total and available memory, in MiB.
pub(crate) fn memory(evidence: &Evidence) -> Option<(u64, u64)> {
    let line = evidence.shown(&host::memory())?.lines().find(|line| line.starts_with("Mem:"))?;
    let mut numbers = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.nth(4)?))
}

/// The load averages of the last 1, 5 and 15 minutes, and the number of processors.
pub(crate) fn load(evidence: &Evidence) -> Option<([f64; 3], f64)> {
    let line = evidence.shown(&host::load())?.lines().last()?;
    let (_, numbers) = line.rsplit_once("average")?;
    let numbers = numbers.trim_start_matches(['s', ':']).replace(", ", " ");
    let mut numbers = numbers.split_whitespace().filter_map(|word| word.replace(',', ".").parse().ok());
    let processors = evidence.shown(&host::processors())?.lines().next()?.trim().parse().ok()?;
    Some(([numbers.next()?, numbers.next()?, numbers.next()?], processors))
}

/// The addresses that are listened on.
pub(crate) fn listeners(evidence: &Evidence) -> Vec<&str> {
    let lines = evidence.shown(&host::ports()).into_iter().flat_map(Fetched::lines);
    let addresses =
        lines.filter(|line| line.starts_with("LISTEN")).filter_map(|line| line.split_whitespace().nth(3));
    addresses.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_file_systems_count() {
        let read = |line: &'static str| FileSystem::read(line).map(|system| (system.used, system.mount));
        assert_eq!(read("/dev/sda1 100 95 5 95% /var/lib"), Some((95, "/var/lib")));
        assert_eq!(read("/dev/loop3 100 100 0 100% /snap/core/1"), None);
        assert_eq!(read("tmpfs 100 50 50 50% /run"), None);
        assert_eq!(read("tmpfs 100 100 0 100% /run"), Some((100, "/run")));
        assert_eq!(read("Filesystem 1024-blocks Used Available Capacity Mounted on"), None);
    }
}
