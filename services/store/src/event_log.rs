//! Logs of events: what an append is, and what is promised of it.

use std::{num::NonZeroUsize, sync::Arc};

use async_trait::async_trait;
use domain::{Event, LogId};
use tokio::sync::watch;

use crate::{Error, OwnerId, Spent, State, error::check_name};

/// The events of all logs, each log's in order and without gaps. A log has one owner, which numbers its events.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Creates a log with its first events and makes its creator the owner.
    async fn create(&self, log: NewLog) -> Result<Creation, Error>;

    /// The log that the same request has created before.
    async fn created(&self, asked: &Idempotency) -> Result<Option<LogId>, Error>;

    /// Appends a batch. When it returns, the events are on disk and every reader sees them. An append whose answer
    /// is [`Error::Unavailable`], or that was dropped, may have happened.
    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), Error>;

    /// Events after a position: at most `limit`, and fewer where they are large. None means that there are none.
    async fn read(&self, log: &LogId, after: u64, limit: NonZeroUsize) -> Result<Vec<Arc<Event>>, Error>;

    /// How far a log is, and a way to wait for more, whoever writes it.
    async fn head(&self, log: &LogId) -> Result<watch::Receiver<Head>, Error>;

    /// Whether events can be appended now.
    async fn check(&self) -> Result<(), Error>;
}

/// The right to append to a log. A claim by another owner ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub(crate) log: LogId,
    pub(crate) epoch: u64,
}

impl Lease {
    /// The log.
    pub fn log(&self) -> &LogId {
        &self.log
    }

    /// Goes up with every claim.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// How far a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its newest event; 0 if it has none.
    pub position: u64,
    /// The newest entry of its inbox; 0 if it has none.
    pub inbox: u64,
}

/// A log that is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct NewLog {
    /// Its id.
    pub id: LogId,
    /// Its owner.
    pub owner: OwnerId,
    /// What is known of it beside its events.
    pub meta: Meta,
    /// What makes a repeated request the same request.
    pub idempotency: Option<Idempotency>,
    /// Its first events, from position 1. A session begins with none.
    pub events: Vec<Event>,
}

impl NewLog {
    /// Checks what no store could check better.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_name("the id of a log", self.id.as_str())?;
        check_name("the owner of a log", self.owner.as_str())?;
        check_name("an account", &self.meta.account)?;
        self.idempotency.as_ref().map_or(Ok(()), Idempotency::check)?;
        dense(&self.id, 0, &self.events)
    }
}

/// What is known of a log beside its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Account that owns the log. It never changes.
    pub account: String,
    /// What the log is of. It never changes.
    pub kind: Kind,
    /// What a list shows.
    pub title: String,
    /// Whatever else its users keep of it; the store does not look into it.
    pub details: Vec<u8>,
}

/// What a log is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One run.
    Run,
    /// A session, with one run after the other.
    Session,
    /// An agent that an account defines. It has no events, and is kept until it is deleted.
    Agent,
    /// An image that was sent ahead. It has no events.
    Image,
    /// What is kept for auditors of a run that was deleted. It has no events.
    Trail,
}

/// What makes a repeated request the same request. It is remembered for as long as the log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Where keys are unique, such as an account.
    pub scope: String,
    /// The client's key.
    pub key: String,
    /// Digest of the request's body.
    pub digest: [u8; 32],
}

impl Idempotency {
    /// Checks what no store could check better.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_name("the scope of an idempotency key", &self.scope)?;
        check_name("an idempotency key", &self.key)
    }
}

/// What became of a log that was to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creation {
    /// It is there, and its creator may append.
    New(Lease),
    /// The request was made before, with the same body: this is its log.
    Existing(LogId),
    /// The key was used before, with another body.
    Mismatch(LogId),
}

/// Events that are appended together: all or none of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The newest position there is; the events follow it.
    pub expected: u64,
    /// The events.
    pub events: Vec<Event>,
    /// The inbox up to this entry is in the log, with these events.
    pub taken: Option<u64>,
    /// What the account has spent for these events.
    pub spent: Spent,
}

impl Batch {
    /// Events that follow a position.
    pub fn new(expected: u64, events: Vec<Event>) -> Self {
        Self { expected, events, ..Self::default() }
    }

    /// These events are what became of the inbox up to an entry: whoever owns the log next begins after it.
    #[must_use]
    pub fn taking(self, entry: u64) -> Self {
        Self { taken: Some(entry), ..self }
    }

    /// These events tell of what was spent: it is counted with them, once.
    #[must_use]
    pub fn costing(self, spent: Spent) -> Self {
        Self { spent, ..self }
    }

    /// How the log stands after these events, if they say anything of it.
    pub(crate) fn state(&self) -> Option<State> {
        State::told_by(&self.events)
    }
}

/// Checks that events follow a position, and each other.
pub(crate) fn dense(log: &LogId, after: u64, events: &[Event]) -> Result<(), Error> {
    for (event, expected) in events.iter().zip(after.saturating_add(1)..) {
        if event.position != expected {
            return Err(Error::Gap { log: log.clone(), expected, found: event.position });
        }
    }
    Ok(())
}
