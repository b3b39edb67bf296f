//! Long texts of a session, by what is in them. They have no names in the file system.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aws_lc_rs::digest;

/// How many texts a session may have. Each is an open file.
const MOST: usize = 512;

/// SHA-256 of a text.
pub(crate) type Digest = Vec<u8>;

/// Why a text is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejected {
    #[error("the texts of a session may have {0} bytes")]
    Full(u64),
    #[error("a session may have {0} texts")]
    TooMany(usize),
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
    file: File,
    digest: digest::Context,
    room: Room<'a>,
}

/// Bytes that a text takes. Dropping it gives them back.
struct Room<'a> {
    blobs: &'a Blobs,
    bytes: u64,
}

impl Room<'_> {
    fn grow(&mut self, more: u64) -> Result<(), Rejected> {
        let mut kept = self.blobs.kept();
        let bytes = kept.bytes.saturating_add(more);
        if bytes > self.blobs.most {
            return Err(Rejected::Full(self.blobs.most));
        }
        kept.bytes = bytes;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.blobs.kept().bytes -= self.bytes;
    }
}

impl Blobs {
    pub(super) fn new(directory: &Path, most: u64) -> Self {
        Self { directory: directory.to_owned(), most, kept: Mutex::default() }
    }

    /// Begins to take a text in. May block.
    pub(crate) fn draft(&self) -> Result<Draft<'_>, Rejected> {
        if self.kept().files.len() >= MOST {
            return Err(Rejected::TooMany(MOST));
        }
        let file = tempfile::tempfile_in(&self.directory)?;
        let room = Room { blobs: self, bytes: 0 };
        Ok(Draft { file, digest: digest::Context::new(&digest::SHA256), room })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept().files.is_empty()
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
        self.room.grow(bytes.len() as u64)?;
        self.digest.update(bytes);
        Ok(self.file.write_all(bytes)?)
    }

    /// Keeps the text under its digest.
    pub(crate) fn keep(self) -> (Digest, u64) {
        let Self { file, digest, mut room } = self;
        let (digest, bytes) = (digest.finish().as_ref().to_vec(), room.bytes);
        let before = room.blobs.kept().files.insert(digest.clone(), Arc::new(file));
        if before.is_none() {
            // It is taken as long as the text is kept.
            room.bytes = 0;
        }
        (digest, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_on_their_way_in_share_the_room_and_give_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(folder.path(), 10);
        let (mut one, mut two) = (blobs.draft().unwrap(), blobs.draft().unwrap());
        one.push(b"123456").unwrap();
        assert!(matches!(two.push(b"12345"), Err(Rejected::Full(10))));
        two.push(b"1234").unwrap();
        drop(two);
        let (digest, bytes) = one.keep();
        assert!(blobs.find(&digest).is_some() && bytes == 6);

        let mut last = blobs.draft().unwrap();
        last.push(b"1234").unwrap();
        assert_eq!(last.keep().1, 4);
        assert!(blobs.draft().unwrap().push(b"1").is_err());
    }

    #[test]
    fn the_same_text_takes_its_room_once() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(folder.path(), 4);
        for _ in 0..3 {
            let mut draft = blobs.draft().unwrap();
            draft.push(b"12").unwrap();
            draft.keep();
        }
        blobs.draft().unwrap().push(b"12").unwrap();
    }

    #[test]
    fn there_are_not_endlessly_many() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(folder.path(), u64::MAX);
        for number in 0..MOST {
            let mut draft = blobs.draft().unwrap();
            draft.push(number.to_string().as_bytes()).unwrap();
            draft.keep();
        }
        assert!(matches!(blobs.draft(), Err(Rejected::TooMany(_))));
    }
}
