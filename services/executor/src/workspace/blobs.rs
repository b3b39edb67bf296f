//! Long texts of a session, by what is in them. They have no names in the file system.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aws_lc_rs::digest;

/// SHA-256 of a text.
pub(crate) type Digest = Vec<u8>;

/// Why a text is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejected {
    #[error("the texts of a session may have {0} bytes")]
    Full(u64),
    #[error("it could not be kept: {0}")]
    Io(#[from] io::Error),
}

/// The texts of one session.
#[derive(Debug)]
pub(crate) struct Blobs {
    directory: PathBuf,
    most: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    files: HashMap<Digest, Arc<File>>,
    bytes: u64,
}

/// A text that is coming in.
pub(crate) struct Draft<'a> {
    blobs: &'a Blobs,
    file: File,
    digest: digest::Context,
    bytes: u64,
}

impl Blobs {
    pub(super) fn new(directory: &Path, most: u64) -> Self {
        Self { directory: directory.to_owned(), most, kept: Mutex::default() }
    }

    /// Begins to take a text in. May block.
    pub(crate) fn draft(&self) -> io::Result<Draft<'_>> {
        let file = tempfile::tempfile_in(&self.directory)?;
        Ok(Draft { blobs: self, file, digest: digest::Context::new(&digest::SHA256), bytes: 0 })
    }

    /// A text that was taken in.
    pub(crate) fn find(&self, digest: &[u8]) -> Option<Arc<File>> {
        self.kept().files.get(digest).cloned()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Draft<'_> {
    /// Takes the next bytes. May block.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Rejected> {
        self.bytes += bytes.len() as u64;
        if self.blobs.kept().bytes + self.bytes > self.blobs.most {
            return Err(Rejected::Full(self.blobs.most));
        }
        self.digest.update(bytes);
        Ok(self.file.write_all(bytes)?)
    }

    /// Keeps the text under its digest.
    pub(crate) fn keep(self) -> (Digest, u64) {
        let digest = self.digest.finish().as_ref().to_vec();
        let mut kept = self.blobs.kept();
        if kept.files.insert(digest.clone(), Arc::new(self.file)).is_none() {
            kept.bytes += self.bytes;
        }
        (digest, self.bytes)
    }
}
