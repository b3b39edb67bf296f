//! What processes that share a store tell each other of themselves, for as long as they live.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::{Error, OwnerId};

/// What each process says of itself. The store does not look into it.
#[async_trait]
pub trait Notices: Send + Sync + 'static {
    /// Says something for a while, in place of what was said before.
    async fn notify(&self, from: &OwnerId, text: Vec<u8>, ttl: Duration) -> Result<(), Error>;

    /// What is said now, in the order of those who say it.
    async fn notices(&self) -> Result<Vec<(OwnerId, Vec<u8>)>, Error>;
}

/// The notices where all processes are this one.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<BTreeMap<OwnerId, (Instant, Vec<u8>)>>);

impl Board {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<OwnerId, (Instant, Vec<u8>)>> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify(&self, from: &OwnerId, text: Vec<u8>, ttl: Duration) {
        self.lock().insert(from.clone(), (Instant::now() + ttl, text));
    }

    pub(crate) fn notices(&self) -> Vec<(OwnerId, Vec<u8>)> {
        let mut notices = self.lock();
        let now = Instant::now();
        notices.retain(|_, (until, _)| *until > now);
        notices.iter().map(|(from, (_, text))| (from.clone(), text.clone())).collect()
    }
}
