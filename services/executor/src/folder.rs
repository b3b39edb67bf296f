//! Directories in which programs write: what is in them, and their end, whatever programs have closed there.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata, PermissionsExt as _},
};
use tempfile::TempDir;

/// What removing something from a directory takes of its owner's rights.
const TO_REMOVE: u32 = 0o700;

/// A directory of its own. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Makes one whose name begins so.
    pub(crate) fn make(parent: &Path, prefix: &str) -> io::Result<Self> {
        tempfile::Builder::new().prefix(prefix).tempdir_in(parent).map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        open_up(self.path());
    }
}

/// Removes a directory with all that is in it.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    open_up(directory);
    fs::remove_dir_all(directory)
}

/// Lets all that is in a directory be removed, as far as that can be.
fn open_up(directory: &Path) {
    if let Err(error) = walk(directory, TO_REMOVE, |_| true) {
        tracing::debug!(%error, "a part of a directory stays closed");
    }
}

/// Looks at what is below a directory while `goes_on` says so, and gives the owner `rights` to each directory there.
/// An error says that something was not seen.
pub(crate) fn walk(
    directory: &Path,
    rights: u32,
    mut goes_on: impl FnMut(&Metadata) -> bool,
) -> io::Result<()> {
    let mode = fs::metadata(directory)?.permissions().mode();
    if mode & rights != rights {
        fs::set_permissions(directory, fs::Permissions::from_mode(mode | rights))?;
    }
    // From here on no link leads out of it, whatever takes the place of what was seen.
    let root = Dir::open_ambient_dir(directory, ambient_authority())?;
    let mut open = vec![PathBuf::from(".")];
    let mut seen = Ok(());
    while let Some(next) = open.pop() {
        match look(&root, &next, rights, &mut open, &mut goes_on) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if is_gone(&error) => {}
            Err(error) => seen = Err(error),
        }
    }
    seen
}

/// Looks at what is in one directory, and notes which of it can be looked into. Says whether to go on.
fn look(
    root: &Dir,
    directory: &Path,
    rights: u32,
    open: &mut Vec<PathBuf>,
    goes_on: &mut impl FnMut(&Metadata) -> bool,
) -> io::Result<bool> {
    for entry in root.read_dir(directory)? {
        let entry = entry?;
        let about = match entry.metadata() {
            Err(error) if is_gone(&error) => continue,
            about => about?,
        };
        if !goes_on(&about) {
            return Ok(false);
        }
        if about.is_dir() {
            let path = directory.join(entry.file_name());
            let mut permissions = about.permissions();
            if permissions.mode() & rights != rights {
                permissions.set_mode(permissions.mode() | rights);
                // If it cannot be, it cannot be looked into either.
                let _ = root.set_permissions(&path, permissions);
            }
            open.push(path);
        }
    }
    Ok(true)
}

/// What goes away meanwhile takes nothing.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_closed_goes() {
        for mode in [0o000, 0o311, 0o400, 0o555] {
            let around = tempfile::tempdir().unwrap();
            let folder = Folder::make(around.path(), "own-").unwrap();
            let path = folder.path().to_owned();
            let inner = path.join("closed/inner");
            fs::create_dir_all(&inner).unwrap();
            fs::write(inner.join("file"), "").unwrap();
            for closed in [&inner, &path.join("closed"), &path] {
                set_mode(closed, mode);
            }
            drop(folder);
            assert!(!path.exists(), "{mode:o}");
        }
    }

    #[test]
    fn what_links_lead_to_stays_as_it_is() {
        let (around, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        set_mode(elsewhere.path(), 0o500);
        let folder = Folder::make(around.path(), "own-").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
        drop(folder);
        assert_eq!(fs::metadata(elsewhere.path()).unwrap().permissions().mode() & 0o777, 0o500);
    }
}
