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
    heads: HashMap<LogId, Waited>,
    full: usize,
}

#[derive(Debug, Default)]
struct Waited {
    head: watch::Sender<Head>,
    /// Whether the log was there since somebody waits for it.
    found: bool,
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
            watched.heads.retain(|_, waited| !waited.head.is_closed());
            watched.full = watched.heads.len() * 2 + SLACK;
        }
        watched.heads.entry(log.clone()).or_default().head.subscribe()
    }

    /// A log is this far, at least.
    pub(crate) fn advance(&self, log: &LogId, head: Head) {
        if let Some(waited) = self.lock().heads.get_mut(log) {
            waited.found = true;
            waited.head.send_if_modified(|last| {
                let newest =
                    Head { position: last.position.max(head.position), inbox: last.inbox.max(head.inbox) };
                std::mem::replace(last, newest) != newest
            });
        }
    }

    /// The logs that somebody waits for. Those that were not found yet are not among them: one that is missing now and
    /// made a moment later would count as gone.
    pub(crate) fn watched(&self) -> Vec<LogId> {
        let watched = self.lock();
        let waited = watched.heads.iter().filter(|(_, waited)| waited.found && !waited.head.is_closed());
        waited.map(|(log, _)| log.clone()).collect()
    }

    /// A log is gone: whoever waits for it is told.
    pub(crate) fn close(&self, log: &LogId) {
        self.lock().heads.remove(log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_asked_about_once_it_was_found_and_while_somebody_waits() {
        let (heads, log) = (Heads::default(), LogId::new("r"));
        let mut head = heads.watch(&log);
        assert_eq!(heads.watched(), []);
        heads.advance(&log, Head::default());
        assert_eq!(heads.watched(), std::slice::from_ref(&log));
        heads.advance(&log, Head { position: 2, inbox: 1 });
        heads.advance(&log, Head { position: 1, inbox: 1 });
        assert_eq!(*head.borrow_and_update(), Head { position: 2, inbox: 1 });
        drop(head);
        assert_eq!(heads.watched(), []);
        let waits = heads.watch(&log);
        heads.close(&log);
        assert!(waits.has_changed().is_err(), "it is told");
    }
}
