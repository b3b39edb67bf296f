//! Who waits for which log, in a process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use domain::LogId;
use tokio::sync::watch;

use crate::Head;

/// Logs that nobody waits for any more are looked for again when there are twice as many, and this many more.
const SLACK: usize = 64;

/// The heads of the logs that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Heads(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    heads: HashMap<LogId, watch::Sender<Head>>,
    full: usize,
}

impl Heads {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for a log. How far it is must be told with [`Heads::advance`] afterwards, so that nothing that
    /// happens in between is missed.
    pub(crate) fn watch(&self, log: &LogId) -> watch::Receiver<Head> {
        let mut watched = self.lock();
        if watched.heads.len() >= watched.full {
            watched.heads.retain(|_, head| !head.is_closed());
            watched.full = watched.heads.len() * 2 + SLACK;
        }
        watched.heads.entry(log.clone()).or_default().subscribe()
    }

    /// A log is this far, at least.
    pub(crate) fn advance(&self, log: &LogId, head: Head) {
        if let Some(last) = self.lock().heads.get(log) {
            last.send_if_modified(|last| {
                let newest =
                    Head { position: last.position.max(head.position), inbox: last.inbox.max(head.inbox) };
                std::mem::replace(last, newest) != newest
            });
        }
    }

    /// The logs that somebody waits for.
    pub(crate) fn watched(&self) -> Vec<LogId> {
        let watched = self.lock();
        watched.heads.iter().filter(|(_, head)| !head.is_closed()).map(|(log, _)| log.clone()).collect()
    }

    /// A log is gone: whoever waits for it is told.
    pub(crate) fn close(&self, log: &LogId) {
        self.lock().heads.remove(log);
    }
}
