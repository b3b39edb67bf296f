//! The event log: the one place where a run's events are, behind a small trait.
//!
//! # Layout
//! * [`EventLog`]: append, read, wait
//! * [`tail`]: a reader that follows a run from any position, without gap or repeat
//! * [`Memory`]: a log that ends with its process

mod memory;
mod tail;

use std::{num::NonZeroUsize, sync::Arc};

use domain::{Event, RunId};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

pub use memory::{Memory, Retention};
pub use tail::tail;

/// Why the log did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such run, or it is no longer kept.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// Somebody else has appended.
    #[error("run {run} is at position {found}, not at {expected}")]
    Conflict {
        /// The run.
        run: RunId,
        /// Where the writer thought it was.
        expected: u64,
        /// Where it is.
        found: u64,
    },
}

/// The events of all runs, each run's in order and without gaps.
pub trait EventLog: Send + Sync + 'static {
    /// Appends events that follow position `expected`; their positions are `expected + 1` and so on. When it
    /// returns, readers see all of them. The first append of a run, at position 0, creates it.
    fn append(&self, run: &RunId, expected: u64, events: Vec<Event>) -> BoxFuture<'_, Result<(), Error>>;

    /// Events after a position, at most `limit` of them.
    fn read(
        &self,
        run: &RunId,
        after: u64,
        limit: NonZeroUsize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Event>>, Error>>;

    /// The newest position of a run, and a way to wait for the next.
    fn head(&self, run: &RunId) -> BoxFuture<'_, Result<watch::Receiver<u64>, Error>>;

    /// Whether events can be appended now.
    fn check(&self) -> BoxFuture<'_, Result<(), Error>>;
}
