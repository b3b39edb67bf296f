//! One log in memory.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::{Event, Timestamp};
use tokio::sync::watch;

use super::weight::weight;
use crate::{
    Batch, BlobId, Entry, Error, Head, Idempotency, Kind, Lease, NewLog, OwnerId, Post, Posted, State,
    catalog::now, event_log::dense,
};

/// A log with everything that belongs to it.
#[derive(Debug)]
pub(super) struct Log {
    pub entry: Entry,
    pub events: Vec<Arc<Event>>,
    pub bytes: u64,
    pub owner: Option<OwnerId>,
    pub epoch: u64,
    pub idempotency: Option<Idempotency>,
    pub blobs: HashMap<BlobId, Vec<u8>>,
    pub head: watch::Sender<Head>,
    inbox: Vec<Posted>,
    keys: HashSet<String>,
    taken: u64,
}

impl Log {
    pub(super) fn new(number: u64, new: NewLog) -> Self {
        let time = now();
        let entry = Entry {
            number,
            log: new.id,
            meta: new.meta,
            state: State::Empty,
            position: 0,
            created: time,
            updated: time,
        };
        let mut log = Self {
            entry,
            events: Vec::new(),
            bytes: 0,
            owner: Some(new.owner),
            epoch: 1,
            idempotency: new.idempotency,
            blobs: HashMap::new(),
            head: watch::Sender::default(),
            inbox: Vec::new(),
            keys: HashSet::new(),
            taken: 0,
        };
        log.add(Batch::new(0, new.events));
        log
    }

    pub(super) fn lease(&self) -> Lease {
        Lease { log: self.entry.log.clone(), epoch: self.epoch }
    }

    pub(super) fn append(&mut self, lease: &Lease, batch: Batch) -> Result<(), Error> {
        let log = &self.entry.log;
        if lease.epoch != self.epoch {
            return Err(Error::Fenced(log.clone()));
        }
        if batch.expected != self.entry.position {
            let (expected, found) = (batch.expected, self.entry.position);
            return Err(Error::Conflict { log: log.clone(), expected, found });
        }
        dense(log, batch.expected, &batch.events)?;
        self.add(batch);
        Ok(())
    }

    fn add(&mut self, batch: Batch) {
        self.entry.state = batch.state().unwrap_or(self.entry.state);
        self.entry.position += batch.events.len() as u64;
        self.taken = self.taken.max(batch.taken.unwrap_or_default());
        self.bytes += batch.events.iter().map(weight).sum::<usize>() as u64;
        self.events.extend(batch.events.into_iter().map(Arc::new));
        self.changed();
    }

    pub(super) fn post(&mut self, key: &str, payload: Vec<u8>) -> Post {
        if !self.keys.insert(key.to_owned()) {
            let earlier = self.inbox.iter().find(|posted| posted.key == key);
            return Post::Earlier(earlier.map(|posted| posted.payload.clone()).unwrap_or_default());
        }
        let entry = self.inbox.len() as u64 + 1;
        self.inbox.push(Posted { entry, key: key.to_owned(), payload });
        self.changed();
        Post::First
    }

    pub(super) fn posted(&self, after: u64) -> Vec<Posted> {
        let after = after.max(self.taken);
        self.inbox.iter().filter(|posted| posted.entry > after).cloned().collect()
    }

    /// Whether nobody must work on it.
    pub(super) fn rests(&self) -> bool {
        self.entry.state != State::Running
            && self.entry.meta.kind != Kind::Agent
            && self.taken >= self.inbox.len() as u64
    }

    pub(super) fn changed(&mut self) {
        self.entry.updated = now();
        let head = Head { position: self.entry.position, inbox: self.inbox.len() as u64 };
        self.head.send_if_modified(|last| std::mem::replace(last, head) != head);
    }

    /// When it last changed; logs that change within one tick of the clock go in the order of their creation.
    pub(super) fn age(&self) -> (Timestamp, u64) {
        (self.entry.updated, self.entry.number)
    }
}
