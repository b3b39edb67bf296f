//! A store in one directory, for one process.
//!
//! # Layout
//! * `schema`: the tables
//! * `writer`: one thread that writes, in few commits
//! * `readers`: connections that only read
//! * `log`: statements about one log; the other files are the traits

mod accounts;
mod blobs;
mod catalog;
mod event_log;
mod inbox;
mod log;
mod ownership;
mod readers;
mod schema;
mod writer;

use std::{
    fs::{DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::Connection;

use crate::{Error, Notices, OwnerId, heads::Heads, notices::Board, owners::Owners};
use readers::Readers;
use writer::Writer;

/// A store in a directory that belongs to this process until it ends. All owners of its logs are in this process,
/// so that whoever opens it finds every log without one.
#[derive(Debug)]
pub struct Sqlite {
    writer: Writer,
    readers: Readers,
    heads: Arc<Heads>,
    owners: Arc<Owners>,
    board: Board,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refuses.
    #[error("cannot use the data directory {path}")]
    Folder {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else uses it.
    #[error("the data directory {0} is in use by another process; give this one its own, or use PostgreSQL")]
    InUse(PathBuf),
    /// It was written by a newer version.
    #[error("the data directory has version {found}, and this program knows up to {known}: use a newer one")]
    Newer {
        /// The version that was found.
        found: usize,
        /// The newest that is known.
        known: usize,
    },
    /// The database refuses.
    #[error("cannot use the database in the data directory")]
    Database(#[from] rusqlite::Error),
}

impl Sqlite {
    /// Opens the store in a directory, and makes it if it is not there.
    ///
    /// # Errors
    /// If the directory cannot be used, or somebody else uses it.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let refused = |source| OpenError::Folder { path: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
        let lock = File::create(folder.join("lock")).map_err(refused)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => OpenError::InUse(folder.to_owned()),
            TryLockError::Error(error) => refused(error),
        })?;
        let database = folder.join("events.db");
        let mut connection = Connection::open(&database)?;
        schema::prepare(&mut connection)?;
        let writer = Writer::start(connection, lock).map_err(refused)?;
        Ok(Self {
            writer,
            readers: Readers::new(database),
            heads: Arc::default(),
            owners: Arc::default(),
            board: Board::default(),
        })
    }
}

#[async_trait]
impl Notices for Sqlite {
    async fn notify(&self, from: &OwnerId, text: Vec<u8>, ttl: Duration) -> Result<(), Error> {
        self.board.notify(from, text, ttl);
        Ok(())
    }

    async fn notices(&self) -> Result<Vec<(OwnerId, Vec<u8>)>, Error> {
        Ok(self.board.notices())
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}
