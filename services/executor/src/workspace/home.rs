//! The directory with all workspaces of one executor. A lock on it says that the executor lives.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::folder::{Folder, remove};

/// The directory. It is removed with this.
#[derive(Debug)]
pub(super) struct Home {
    directory: Folder,
    _lock: File,
}

impl Home {
    /// Makes it below `state`, and removes those whose executors are gone.
    pub(super) fn make(state: &Path) -> io::Result<Self> {
        let all = state.join("workspaces");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        // Held by whoever makes or removes one, so that none is taken for lost before it is locked.
        let gate = File::create(all.join("lock"))?;
        flock(&gate, FlockOperation::LockExclusive)?;
        for left in homes(&all)? {
            if let Err(error) = remove_if_lost(&left) {
                tracing::warn!(%error, "files of a lost executor cannot be removed");
            }
        }
        let directory = Folder::make(&all, "e-")?;
        let lock = File::open(directory.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn homes(all: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(all)?.collect::<io::Result<Vec<_>>>()?;
    let is_home = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("e-");
    Ok(entries.iter().filter(|entry| is_home(entry)).map(fs::DirEntry::path).collect())
}

fn remove_if_lost(home: &Path) -> io::Result<()> {
    let lock = File::open(home)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => remove(home),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
