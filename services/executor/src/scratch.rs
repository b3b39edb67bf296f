//! Directories of an executor among the machine's temporary files, and what those processes left that were killed.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::geteuid;

use crate::folder::{Folder, remove};

const PREFIX: &str = "sleuth-work-";
/// What is younger may be on its way to be used.
const YOUNG: Duration = Duration::from_secs(60);

/// A directory that only this user may enter, and no command that a model wrote. Dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    folder: Folder,
    /// Locked, so that others see that it is in use.
    _held: File,
}

impl Scratch {
    /// Makes one, and removes those that killed processes of this user left.
    pub fn new() -> io::Result<Self> {
        sweep(&std::env::temp_dir());
        let folder = Folder::make(&std::env::temp_dir(), PREFIX)?;
        let held = File::open(folder.path())?;
        // Where there are no locks, nobody can remove what is left either.
        let _ = held.try_lock();
        Ok(Self { folder, _held: held })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what killed executors left in a folder.
fn sweep(folder: &Path) {
    for path in left(folder, PREFIX) {
        if File::open(&path).is_ok_and(|held| held.try_lock().is_ok()) {
            // Another one may be at it.
            let _ = remove(&path);
        }
    }
}

/// Directories of this user in a folder that begin so and are not new. One that is in use may be among them.
pub(crate) fn left(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named
        .filter(|entry| entry.metadata().is_ok_and(|about| is_left(&about)))
        .map(|entry| entry.path())
        .collect()
}

fn is_left(about: &Metadata) -> bool {
    let age = about.modified().ok().and_then(|time| time.elapsed().ok());
    about.is_dir() && about.uid() == geteuid().as_raw() && age.is_some_and(|age| age > YOUNG)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_nobody_holds_goes_once_it_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, age| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "").unwrap();
            let made = File::open(&path).unwrap();
            made.set_modified(SystemTime::now() - age).unwrap();
            (path, made)
        };
        let (left, _) = make("sleuth-work-left", 2 * YOUNG);
        let (new, _) = make("sleuth-work-new", Duration::ZERO);
        let (other, _) = make("sleuth-other", 2 * YOUNG);
        let (used, held) = make("sleuth-work-used", 2 * YOUNG);
        held.try_lock().unwrap();
        sweep(folder.path());
        assert_eq!([&left, &new, &other, &used].map(|path| path.exists()), [false, true, true, true]);
    }
}
