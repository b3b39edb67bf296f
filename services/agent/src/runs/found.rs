//! Runs that are looked for: driven here, driven by another agent, or long ended.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use domain::{LogId, RunId};
use store::{Entry, Idempotency, Kind, Query, State, Store};
use tokio::time::interval;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use uuid::Uuid;

use super::{Progress, Reader, Runs, mail};

/// How often an agent that serves a reader tells the agent that drives the run.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// Where a run is.
pub(crate) enum Found {
    /// It is, or was, driven here.
    Here(Arc<Progress>),
    /// It is in the store.
    Stored(Box<Entry>),
}

/// Somebody who reads a run. Dropping it says that they left.
pub(crate) enum Reading {
    Here(Reader),
    /// The run is driven elsewhere, or has ended.
    Stored {
        run: RunId,
        _signs: Option<AbortOnDropHandle<()>>,
    },
}

impl Reading {
    pub(crate) fn run(&self) -> &RunId {
        match self {
            Self::Here(reader) => &reader.run().id,
            Self::Stored { run, .. } => run,
        }
    }

    /// Cancelled once the run is to be looked for elsewhere.
    pub(crate) fn left(&self) -> CancellationToken {
        match self {
            Self::Here(reader) => reader.run().left(),
            Self::Stored { .. } => CancellationToken::new(),
        }
    }
}

impl Runs {
    /// A run of an account. A run of another account does not exist.
    pub(crate) async fn find(&self, id: &RunId, account: &str) -> Result<Option<Found>, store::Error> {
        if let Some(run) = self.table.get(id) {
            return Ok(Some(Found::Here(run)).filter(|_| self.owns(id, account)));
        }
        match self.log.entry(&LogId::from(id)).await {
            Ok(entry) if entry.meta.account == account && entry.meta.kind == Kind::Run => {
                Ok(Some(Found::Stored(Box::new(entry))))
            }
            Ok(_) | Err(store::Error::UnknownLog(_) | store::Error::BadName(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The run that the same request has begun before, within the account that is its scope.
    pub(crate) async fn begun(&self, asked: &Idempotency) -> Result<Option<Found>, store::Error> {
        match self.log.created(asked).await? {
            Some(log) => self.find(&RunId::new(log.as_str()), &asked.scope).await,
            None => Ok(None),
        }
    }

    fn owns(&self, id: &RunId, account: &str) -> bool {
        self.table.get(id).is_some_and(|run| run.account == account)
    }

    /// Begins to read a run.
    pub(crate) fn read(&self, found: Found) -> Reading {
        match found {
            Found::Here(run) => Reading::Here(self.read_here(run)),
            Found::Stored(entry) => {
                let signs = (entry.state == State::Running).then(|| {
                    let signs = give_signs(self.log(), entry.log.clone());
                    AbortOnDropHandle::new(tokio::spawn(signs))
                });
                Reading::Stored { run: RunId::new(entry.log.as_str()), _signs: signs }
            }
        }
    }

    /// Begins to read a run that is driven here.
    pub(super) fn read_here(&self, run: Arc<Progress>) -> Reader {
        Reader::new(run, self.config.disconnect_grace)
    }

    /// Stops a run, wherever it is driven.
    pub(crate) async fn cancel(&self, found: Found, reason: String) -> Result<(), store::Error> {
        match found {
            Found::Here(run) => run.cancel(reason),
            Found::Stored(entry) if entry.state == State::Running => {
                self.log.post(&entry.log, mail::CANCEL, reason.into_bytes()).await?;
            }
            Found::Stored(_) => {}
        }
        Ok(())
    }

    /// Runs of an account that look at no other clusters than `only`, newest first.
    pub(crate) async fn list(
        &self,
        account: &str,
        only: &[String],
        limit: usize,
    ) -> Result<Vec<Found>, store::Error> {
        let limit = NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN);
        let (mut listed, mut before) = (Vec::new(), None);
        loop {
            let query = Query { account: account.to_owned(), kind: Kind::Run, before, limit };
            let entries = self.log.list(query).await?;
            before = entries.last().map(|entry| entry.number);
            let is_last = entries.len() < limit.get();
            for entry in entries {
                let found = match self.table.get(&RunId::new(entry.log.as_str())) {
                    Some(run) => Found::Here(run),
                    None => Found::Stored(Box::new(entry)),
                };
                if self.stays_within(&found, only).await? {
                    listed.push(found);
                }
                if listed.len() == limit.get() {
                    return Ok(listed);
                }
            }
            if is_last {
                return Ok(listed);
            }
        }
    }
}

async fn give_signs(store: Arc<dyn Store>, log: LogId) {
    let mut ticks = interval(SIGN_OF_LIFE);
    loop {
        ticks.tick().await;
        let key = format!("{}{}", mail::READING, Uuid::now_v7().simple());
        if let Err(error) = store.post(&log, &key, Vec::new()).await {
            tracing::debug!(%error, "a run does not know that somebody reads it");
        }
    }
}
