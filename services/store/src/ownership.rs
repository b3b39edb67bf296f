//! Who may append to a log: one owner at a time, for as long as its heart beats.

use std::time::Duration;

use async_trait::async_trait;
use domain::LogId;

use crate::{Error, Lease};

/// A process that owns logs. A process that starts again is another owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(String);

impl OwnerId {
    /// Wraps the text of an id.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Leases. Renewing them costs one heartbeat of their owner, however many they are.
#[async_trait]
pub trait Ownership: Send + Sync + 'static {
    /// Says that an owner lives, and will for `ttl`. Zero ends it.
    async fn heartbeat(&self, owner: &OwnerId, ttl: Duration) -> Result<(), Error>;

    /// Takes over a log whose owner has released it or is gone, and fences that owner. `None` if it lives. An
    /// owner that claims its own log fences what it did before.
    async fn claim(&self, log: &LogId, owner: &OwnerId) -> Result<Option<Lease>, Error>;

    /// Gives a log up. A lease that has been taken over is released already.
    async fn release(&self, lease: Lease) -> Result<(), Error>;

    /// Logs that need an owner and have none that lives: their run goes on, or their inbox has entries that no batch
    /// has taken.
    async fn abandoned(&self, limit: usize) -> Result<Vec<LogId>, Error>;
}
