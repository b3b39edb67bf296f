//! What other agents tell the driver of a run, through the inbox of its log.

use std::{sync::Arc, time::Duration};

use domain::{CallId, Input, LogId};
use store::{Error, Posted, Store};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::{Progress, settle, steer};

/// Key of the wish that a run stops; the payload says why.
pub(super) const CANCEL: &str = "cancel";
/// Beginning of the keys that settle a call.
pub(super) const SETTLED: &str = "settled/";
/// Beginning of the keys of what is said to a run.
pub(super) const SAID: &str = "said/";
/// Beginning of the keys that say that somebody reads the run.
pub(super) const READING: &str = "reading/";

/// Time between two tries while the store is away.
const PAUSE: Duration = Duration::from_secs(1);

/// The inbox of a run that is driven here. It is read for as long as this is there.
pub(crate) struct Mail {
    posted: mpsc::Receiver<Vec<Posted>>,
    taken: u64,
    _reading: AbortOnDropHandle<()>,
}

impl Mail {
    pub(crate) fn new(store: Arc<dyn Store>, log: LogId) -> Self {
        let (to, posted) = mpsc::channel(1);
        let reading = AbortOnDropHandle::new(tokio::spawn(read(store, log, to)));
        Self { posted, taken: 0, _reading: reading }
    }

    /// The last entry that was looked at.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// What has come, once something has. Dropping it loses nothing.
    pub(crate) async fn next(&mut self, progress: &Arc<Progress>) -> Vec<Input> {
        let Some(posted) = self.posted.recv().await else {
            // The log is gone: nothing will come.
            return std::future::pending().await;
        };
        let mut inputs = Vec::new();
        for entry in posted {
            self.taken = entry.entry;
            if entry.key == CANCEL {
                let reason = String::from_utf8_lossy(&entry.payload).into_owned();
                inputs.push(Input::Cancelled { reason });
            } else if let Some(call) = entry.key.strip_prefix(SETTLED) {
                inputs.extend(settle::input(CallId::new(call), &entry.payload));
            } else if entry.key.starts_with(SAID) {
                inputs.extend(steer::input(&entry.payload));
            } else if entry.key.starts_with(READING) {
                progress.is_read_elsewhere();
            }
        }
        inputs
    }
}

/// Reads the inbox of a log for as long as it is there.
async fn read(store: Arc<dyn Store>, log: LogId, to: mpsc::Sender<Vec<Posted>>) {
    let mut taken = 0;
    loop {
        match wait(&*store, &log, &mut taken).await {
            Ok(posted) => {
                if to.send(posted).await.is_err() {
                    return;
                }
            }
            Err(Error::UnknownLog(_)) => return,
            Err(error) => {
                tracing::warn!(%error, "the inbox of a run cannot be read");
                sleep(PAUSE).await;
            }
        }
    }
}

/// What was posted after an entry, once something was.
async fn wait(store: &dyn Store, log: &LogId, taken: &mut u64) -> Result<Vec<Posted>, Error> {
    let mut head = store.head(log).await?;
    let came = head.wait_for(|head| head.inbox > *taken).await.map(|head| head.inbox);
    let newest = came.map_err(|_| Error::UnknownLog(log.clone()))?;
    let posted = store.posted(log, *taken).await?;
    // Without any, they were taken before.
    *taken = posted.last().map_or(newest, |last| last.entry);
    Ok(posted)
}
