//! How much is in a directory.

use std::path::Path;

use cap_std::fs::MetadataExt as _;

use crate::folder::walk;

/// What each file takes at least, so that empty ones are not free.
const ENTRY: u64 = 512;
/// What a look into a directory takes of its owner's rights.
const TO_LOOK: u32 = 0o500;

/// Whether the files below a directory take more bytes of the disk. What cannot be looked into does. What is deleted
/// and still open does not count.
pub(super) fn exceeds(directory: &Path, most: u64) -> bool {
    let mut size = 0;
    let walked = walk(directory, TO_LOOK, |about| {
        size += about.blocks() * 512 + ENTRY;
        size <= most
    });
    walked.is_err() || size > most
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn large(path: &Path) {
        fs::write(path, vec![1; 2 << 20]).unwrap();
    }

    #[test]
    fn what_is_closed_counts() {
        for mode in [0o000, 0o311, 0o400, 0o555] {
            let folder = tempfile::tempdir().unwrap();
            let closed = folder.path().join("closed");
            fs::create_dir(&closed).unwrap();
            large(&closed.join("file"));
            fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
            assert!(exceeds(folder.path(), MIB), "{mode:o}");
            assert!(!exceeds(folder.path(), 3 * MIB), "{mode:o}");
        }
    }

    #[test]
    fn what_links_lead_to_does_not() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        large(&elsewhere.path().join("file"));
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
        assert!(!exceeds(folder.path(), MIB));
    }
}
