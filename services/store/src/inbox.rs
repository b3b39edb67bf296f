//! What others tell the owner of a log: answers, cancellations, messages.

use async_trait::async_trait;
use domain::LogId;

use crate::Error;

/// Entries for the owner of a log, wherever it runs. They last as long as the log.
#[async_trait]
pub trait Inbox: Send + Sync + 'static {
    /// Puts an entry into the inbox of a log, if there is none with its key. When it returns, the entry that won is
    /// on disk.
    async fn post(&self, log: &LogId, key: &str, payload: Vec<u8>) -> Result<Post, Error>;

    /// Entries after one that no batch has taken yet, in their order.
    async fn posted(&self, log: &LogId, after: u64) -> Result<Vec<Posted>, Error>;
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Post {
    /// It is there.
    First,
    /// There was one with its key before, which stays; this is its payload.
    Earlier(Vec<u8>),
}

/// An entry of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Its place: dense, from 1.
    pub entry: u64,
    /// Its key.
    pub key: String,
    /// What it says.
    pub payload: Vec<u8>,
}
