//! Large bodies beside a log, found by their content.

use async_trait::async_trait;
use domain::LogId;
use sha2::{Digest as _, Sha256};

use crate::Error;

/// SHA-256 of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobId(pub [u8; 32]);

impl BlobId {
    /// The id of a body.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

/// Bodies that belong to a log and go with it.
#[async_trait]
pub trait Blobs: Send + Sync + 'static {
    /// Keeps a body. When it returns, the body is on disk.
    async fn put_blob(&self, log: &LogId, bytes: Vec<u8>) -> Result<BlobId, Error>;

    /// A body of a log, if it has it.
    async fn blob(&self, log: &LogId, id: BlobId) -> Result<Option<Vec<u8>>, Error>;
}
