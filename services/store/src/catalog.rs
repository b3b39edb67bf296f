//! The logs there are, what is known of them, and which of them go.

use std::{
    num::NonZeroUsize,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use domain::{LogId, Timestamp};

use crate::{Error, Kind, Meta, State};

/// The logs there are.
#[async_trait]
pub trait Catalog: Send + Sync + 'static {
    /// What is known of a log.
    async fn entry(&self, log: &LogId) -> Result<Entry, Error>;

    /// Logs of an account, newest first.
    async fn list(&self, query: Query) -> Result<Vec<Entry>, Error>;

    /// Replaces the title and the details of a log.
    async fn describe(&self, log: &LogId, title: String, details: Vec<u8>) -> Result<(), Error>;

    /// Replaces the title and the details of a log if its details are still what they were. Whether they are replaced.
    async fn amend(
        &self,
        log: &LogId,
        before: Vec<u8>,
        title: String,
        details: Vec<u8>,
    ) -> Result<bool, Error>;

    /// Deletes a log with its inbox, its blobs and its idempotency key. False if there was none.
    async fn delete(&self, log: &LogId) -> Result<bool, Error>;

    /// Deletes logs that are at rest and that need not be kept, some at a time; returns how many.
    async fn sweep(&self, keep: Retention) -> Result<usize, Error>;
}

/// A log, in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Goes up with every log that is created.
    pub number: u64,
    /// The log.
    pub log: LogId,
    /// What is known of it beside its events.
    pub meta: Meta,
    /// How its newest run stands.
    pub state: State,
    /// Its newest event.
    pub position: u64,
    /// When it was created.
    pub created: Timestamp,
    /// When it changed last.
    pub updated: Timestamp,
}

/// What a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The account.
    pub account: String,
    /// What the logs are of.
    pub kind: Kind,
    /// The [`Entry::number`] below which the list begins; `None` for the newest log.
    pub before: Option<u64>,
    /// Logs to show at most.
    pub limit: NonZeroUsize,
}

/// How much is kept of logs at rest: those whose run has ended, or has not begun, and whose inbox is empty. Agents stay. Logs
/// that have not changed for longest go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// How long they are kept after their last change.
    pub age: Option<Duration>,
    /// How many are kept.
    pub logs: Option<u64>,
    /// Bytes of all of them together. One is kept, however large it is.
    pub bytes: Option<u64>,
}

impl Retention {
    /// The time before which nothing that rests is kept.
    pub(crate) fn oldest(&self) -> i64 {
        let age = self.age.map_or(i64::MAX, |age| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX));
        now().0.saturating_sub(age)
    }
}

/// The time by this machine's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
