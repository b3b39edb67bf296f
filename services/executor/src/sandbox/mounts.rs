//! The mounts that this process sees, and making them read-only.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStringExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    mount::{MountFlags, mount_remount},
};

/// A mount, with the options that belong to it and not to its file system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// What of the file system is mounted.
    pub(super) root: PathBuf,
    pub(super) at: PathBuf,
    pub(super) kind: String,
    /// Options of the file system.
    pub(super) options: String,
    flags: MountFlags,
}

/// All mounts of this process.
pub(super) fn all() -> io::Result<Vec<Mount>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(read).collect())
}

/// `36 35 98:0 /root /at rw,noatime master:1 - ext4 /dev/sda rw,errors=continue`
pub(super) fn read(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let root = path(fields.nth(3)?);
    let at = path(fields.next()?);
    let flags = String::from_utf8_lossy(fields.next()?).split(',').filter_map(flag).collect();
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1).map(String::from_utf8_lossy);
    let kind = rest.next()?.into_owned();
    let options = rest.nth(1)?.into_owned();
    Some(Mount { root, at, kind, options, flags })
}

/// The kernel writes blanks and backslashes as three octal digits.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, escaped) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

fn flag(option: &str) -> Option<MountFlags> {
    Some(match option {
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "noatime" => MountFlags::NOATIME,
        "nodiratime" => MountFlags::NODIRATIME,
        "relatime" => MountFlags::RELATIME,
        _ => return None,
    })
}

/// Makes every mount at and below `top` read-only and without programs that raise privileges; those below `devices`
/// keep their devices, all others lose them.
pub(super) fn seal(top: &Path, devices: &Path) -> io::Result<()> {
    for mount in all()?.into_iter().filter(|mount| mount.at.starts_with(top)) {
        let mut flags = mount.flags | MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID;
        if !mount.at.starts_with(devices) {
            flags |= MountFlags::NODEV;
        }
        match mount_remount(&mount.at, flags, c"") {
            // Another mount covers it, or its directory cannot be entered: no command gets there either.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ACCESS) => {}
            Err(error) => {
                return Err(io::Error::new(error.kind(), format!("{}: {error}", mount.at.display())));
            }
        }
    }
    Ok(())
}

/// Makes a mount writable that was sealed with what it was made of.
pub(super) fn unseal(at: &Path) -> io::Result<()> {
    let own = all()?.into_iter().rfind(|mount| mount.at == at).ok_or(io::ErrorKind::NotFound)?;
    Ok(mount_remount(at, own.flags | MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV, c"")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_escapes() {
        let line =
            br"36 35 98:0 /a\040b /c\134d rw,noatime,nodev master:1 shared:2 - ext4 /dev/sda rw,errors=x";
        let mount = read(line).unwrap();
        assert_eq!((mount.root.to_str(), mount.at.to_str()), (Some("/a b"), Some(r"/c\d")));
        assert_eq!((mount.kind.as_str(), mount.options.as_str()), ("ext4", "rw,errors=x"));
        assert_eq!(mount.flags, MountFlags::NOATIME | MountFlags::NODEV);
        assert_eq!(read(b"garbage"), None);
    }
}
