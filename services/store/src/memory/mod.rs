//! A store that ends with its process.

mod accounts;
mod log;
mod weight;

use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use domain::{Event, LogId};
use tokio::sync::watch;

use crate::{
    Batch, BlobId, Blobs, Catalog, Creation, Entry, Error, EventLog, Head, Idempotency, Inbox, Lease, NewLog,
    Notices, OwnerId, Ownership, Post, Posted, Query, Retention, error::check_name, notices::Board,
    owners::Owners,
};
use log::Log;

/// A store in memory. It forgets by itself what it need not keep.
#[derive(Debug)]
pub struct Memory {
    logs: Mutex<Logs>,
    owners: Owners,
    accounts: Mutex<accounts::Known>,
    board: Board,
    keep: Retention,
}

#[derive(Debug, Default)]
struct Logs {
    by_id: HashMap<LogId, Log>,
    by_number: BTreeMap<u64, LogId>,
    /// Logs of idempotency keys, by scope and key.
    by_key: HashMap<(String, String), LogId>,
    created: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Retention { age: None, logs: Some(1000), bytes: Some(256 << 20) })
    }
}

impl Memory {
    /// An empty store.
    pub fn new(keep: Retention) -> Self {
        let (logs, owners, accounts, board) = Default::default();
        Self { logs, owners, accounts, board, keep }
    }

    fn lock(&self) -> MutexGuard<'_, Logs> {
        // Nothing in here panics half-way through a change.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, accounts::Known> {
        // Nothing in here panics half-way through a change.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Notices for Memory {
    async fn notify(&self, from: &OwnerId, text: Vec<u8>, ttl: Duration) -> Result<(), Error> {
        self.board.notify(from, text, ttl);
        Ok(())
    }

    async fn notices(&self) -> Result<Vec<(OwnerId, Vec<u8>)>, Error> {
        Ok(self.board.notices())
    }
}

impl Logs {
    fn get(&self, log: &LogId) -> Result<&Log, Error> {
        self.by_id.get(log).ok_or_else(|| Error::UnknownLog(log.clone()))
    }

    fn get_mut(&mut self, log: &LogId) -> Result<&mut Log, Error> {
        self.by_id.get_mut(log).ok_or_else(|| Error::UnknownLog(log.clone()))
    }

    fn create(&mut self, new: NewLog) -> Result<Creation, Error> {
        let key = new.idempotency.as_ref().map(|asked| (asked.scope.clone(), asked.key.clone()));
        if let Some(log) = key.as_ref().and_then(|key| self.by_key.get(key)) {
            let same = self.get(log)?.idempotency == new.idempotency;
            return Ok(if same { Creation::Existing(log.clone()) } else { Creation::Mismatch(log.clone()) });
        }
        if self.by_id.contains_key(&new.id) {
            return Err(Error::Exists(new.id));
        }
        self.created += 1;
        let id = new.id.clone();
        let log = Log::new(self.created, new);
        let lease = log.lease();
        self.by_number.insert(self.created, id.clone());
        self.by_key.extend(key.map(|key| (key, id.clone())));
        self.by_id.insert(id, log);
        Ok(Creation::New(lease))
    }

    fn remove(&mut self, id: &LogId) -> bool {
        let Some(log) = self.by_id.remove(id) else { return false };
        self.by_number.remove(&log.entry.number);
        if let Some(asked) = log.idempotency {
            self.by_key.remove(&(asked.scope, asked.key));
        }
        true
    }

    fn sweep(&mut self, keep: Retention) -> usize {
        let mut resting: Vec<_> = self.by_id.values().filter(|log| log.rests()).collect();
        resting.sort_unstable_by_key(|log| std::cmp::Reverse(log.age()));
        let oldest = keep.oldest();
        let mut bytes = 0;
        let gone = resting.iter().zip(1..).filter(|(log, nth)| {
            bytes += log.bytes;
            log.entry.updated.0 < oldest
                || keep.logs.is_some_and(|most| *nth > most)
                || (*nth > 1 && keep.bytes.is_some_and(|most| bytes > most))
        });
        let gone: Vec<_> = gone.map(|(log, _)| log.entry.log.clone()).collect();
        gone.iter().filter(|log| self.remove(log)).count()
    }
}

#[async_trait]
impl EventLog for Memory {
    async fn create(&self, log: NewLog) -> Result<Creation, Error> {
        log.check()?;
        self.lock().create(log)
    }

    async fn created(&self, asked: &Idempotency) -> Result<Option<LogId>, Error> {
        asked.check()?;
        let logs = self.lock();
        let log = logs.by_key.get(&(asked.scope.clone(), asked.key.clone()));
        let is_same = |log: &&LogId| logs.get(log).is_ok_and(|log| log.idempotency.as_ref() == Some(asked));
        Ok(log.filter(is_same).cloned())
    }

    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), Error> {
        let mut logs = self.lock();
        let log = logs.get_mut(&lease.log)?;
        let (rested, spent) = (log.rests(), batch.spent);
        log.append(lease, batch)?;
        self.known().spend(&log.entry.meta.account, spent);
        if log.rests() && !rested {
            logs.sweep(self.keep);
        }
        Ok(())
    }

    async fn read(&self, log: &LogId, after: u64, limit: NonZeroUsize) -> Result<Vec<Arc<Event>>, Error> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        Ok(self.lock().get(log)?.events.iter().skip(after).take(limit.get()).cloned().collect())
    }

    async fn head(&self, log: &LogId) -> Result<watch::Receiver<Head>, Error> {
        Ok(self.lock().get(log)?.head.subscribe())
    }

    async fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

#[async_trait]
impl Ownership for Memory {
    async fn heartbeat(&self, owner: &OwnerId, ttl: Duration) -> Result<(), Error> {
        check_name("an owner", owner.as_str())?;
        self.owners.beat(owner, ttl);
        Ok(())
    }

    async fn claim(&self, log: &LogId, owner: &OwnerId) -> Result<Option<Lease>, Error> {
        let mut logs = self.lock();
        let log = logs.get_mut(log)?;
        let held = log.owner.as_ref().is_some_and(|other| other != owner && self.owners.live(other));
        if held {
            return Ok(None);
        }
        log.owner = Some(owner.clone());
        log.epoch += 1;
        Ok(Some(log.lease()))
    }

    async fn release(&self, lease: Lease) -> Result<(), Error> {
        let mut logs = self.lock();
        let log = logs.get_mut(&lease.log)?;
        if log.epoch == lease.epoch {
            log.owner = None;
            log.epoch += 1;
        }
        Ok(())
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<LogId>, Error> {
        let logs = self.lock();
        let abandoned =
            logs.by_number.values().filter_map(|id| logs.by_id.get(id)).filter(|log| {
                !log.rests() && !log.owner.as_ref().is_some_and(|owner| self.owners.live(owner))
            });
        Ok(abandoned.take(limit).map(|log| log.entry.log.clone()).collect())
    }
}

#[async_trait]
impl Inbox for Memory {
    async fn post(&self, log: &LogId, key: &str, payload: Vec<u8>) -> Result<Post, Error> {
        check_name("the key of an inbox entry", key)?;
        Ok(self.lock().get_mut(log)?.post(key, payload))
    }

    async fn posted(&self, log: &LogId, after: u64) -> Result<Vec<Posted>, Error> {
        Ok(self.lock().get(log)?.posted(after))
    }
}

#[async_trait]
impl Blobs for Memory {
    async fn put_blob(&self, log: &LogId, bytes: Vec<u8>) -> Result<BlobId, Error> {
        let id = BlobId::of(&bytes);
        let mut logs = self.lock();
        let log = logs.get_mut(log)?;
        let added = bytes.len() as u64;
        if log.blobs.insert(id, bytes).is_none() {
            log.bytes += added;
        }
        Ok(id)
    }

    async fn blob(&self, log: &LogId, id: BlobId) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.lock().get(log)?.blobs.get(&id).cloned())
    }
}

#[async_trait]
impl Catalog for Memory {
    async fn entry(&self, log: &LogId) -> Result<Entry, Error> {
        Ok(self.lock().get(log)?.entry.clone())
    }

    async fn list(&self, query: Query) -> Result<Vec<Entry>, Error> {
        let logs = self.lock();
        let below = logs.by_number.range(..query.before.unwrap_or(u64::MAX)).rev();
        let entries = below.filter_map(|(_, id)| logs.by_id.get(id)).map(|log| &log.entry);
        let wanted = |entry: &&Entry| entry.meta.account == query.account && entry.meta.kind == query.kind;
        Ok(entries.filter(wanted).take(query.limit.get()).cloned().collect())
    }

    async fn describe(&self, log: &LogId, title: String, details: Vec<u8>) -> Result<(), Error> {
        let mut logs = self.lock();
        let log = logs.get_mut(log)?;
        log.entry.meta.title = title;
        log.entry.meta.details = details;
        log.changed();
        Ok(())
    }

    async fn amend(
        &self,
        log: &LogId,
        before: Vec<u8>,
        title: String,
        details: Vec<u8>,
    ) -> Result<bool, Error> {
        let mut logs = self.lock();
        let log = logs.get_mut(log)?;
        if log.entry.meta.details != before {
            return Ok(false);
        }
        (log.entry.meta.title, log.entry.meta.details) = (title, details);
        log.changed();
        Ok(true)
    }

    async fn delete(&self, log: &LogId) -> Result<bool, Error> {
        Ok(self.lock().remove(log))
    }

    async fn sweep(&self, keep: Retention) -> Result<usize, Error> {
        Ok(self.lock().sweep(keep))
    }
}
