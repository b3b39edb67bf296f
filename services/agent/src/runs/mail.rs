//! What other agents tell the driver of a run, through the inbox of its log.

use std::{sync::Arc, time::Duration};

use domain::{CallId, Input, LogId};
use store::{Head, Posted, Store};
use tokio::{sync::watch, time::sleep};

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

/// The inbox of a run that is driven here.
pub(crate) struct Mail {
    store: Arc<dyn Store>,
    log: LogId,
    head: Option<watch::Receiver<Head>>,
    taken: u64,
}

impl Mail {
    pub(crate) fn new(store: Arc<dyn Store>, log: LogId) -> Self {
        Self { store, log, head: None, taken: 0 }
    }

    /// The last entry that was looked at.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// What has come, once something has. Dropping it loses nothing.
    pub(crate) async fn next(&mut self, progress: &Arc<Progress>) -> Vec<Input> {
        let posted = loop {
            match self.wait().await {
                Ok(posted) => break posted,
                Err(error) => tracing::warn!(%error, "the inbox of a run cannot be read"),
            }
            sleep(PAUSE).await;
        };
        let mut inputs = Vec::new();
        for entry in posted {
            self.taken = entry.entry;
            if entry.key == CANCEL {
                let reason = String::from_utf8_lossy(&entry.payload).into_owned();
                inputs.push(Input::Cancelled { reason });
            } else if let Some(call) = entry.key.strip_prefix(SETTLED) {
                inputs.extend(settle::input(CallId::new(call), &entry.payload));
            } else if let Some(key) = entry.key.strip_prefix(SAID) {
                inputs.extend(steer::input(key, &entry.payload));
            } else if entry.key.starts_with(READING) {
                progress.is_read_elsewhere();
            }
        }
        inputs
    }

    async fn wait(&mut self) -> Result<Vec<Posted>, store::Error> {
        let head = match &mut self.head {
            Some(head) => head,
            none => none.insert(self.store.head(&self.log).await?),
        };
        let taken = self.taken;
        if head.wait_for(|head| head.inbox > taken).await.is_err() {
            // The log is gone: nothing will come.
            std::future::pending::<()>().await;
        }
        self.store.posted(&self.log, taken).await
    }
}
