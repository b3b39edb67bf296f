//! Tells the other agents on the same store that this one lives.

use std::{sync::Arc, time::Duration};

use store::{OwnerId, Store};
use tokio::{sync::OnceCell, time::interval};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

/// How long an agent counts as alive after a beat, and the time between two.
const TTL: Duration = Duration::from_secs(8);
const PERIOD: Duration = Duration::from_secs(2);

/// The life of this agent as an owner of logs. It begins with its first run.
pub(super) struct Heart {
    store: Arc<dyn Store>,
    owner: OwnerId,
    beating: OnceCell<AbortOnDropHandle<()>>,
}

impl Heart {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let owner = OwnerId::new(format!("agent_{}", Uuid::now_v7().simple()));
        Self { store, owner, beating: OnceCell::new() }
    }

    /// The owner, which lives from now on.
    pub(super) async fn beats(&self) -> Result<OwnerId, store::Error> {
        self.beating.get_or_try_init(|| self.begin()).await?;
        Ok(self.owner.clone())
    }

    /// Lets others take over at once what this agent owned.
    pub(super) async fn stops(&self) {
        if self.beating.initialized()
            && let Err(error) = self.store.heartbeat(&self.owner, Duration::ZERO).await
        {
            tracing::warn!(%error, "the store does not know that this agent has ended");
        }
    }

    async fn begin(&self) -> Result<AbortOnDropHandle<()>, store::Error> {
        self.store.heartbeat(&self.owner, TTL).await?;
        Ok(AbortOnDropHandle::new(tokio::spawn(beat(Arc::clone(&self.store), self.owner.clone()))))
    }
}

async fn beat(store: Arc<dyn Store>, owner: OwnerId) {
    let mut ticks = interval(PERIOD);
    loop {
        ticks.tick().await;
        if let Err(error) = store.heartbeat(&owner, TTL).await {
            tracing::warn!(%error, "the store does not know that this agent lives");
        }
    }
}
