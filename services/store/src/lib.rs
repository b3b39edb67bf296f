//! The durable log: the one place where events are, behind a few small traits.
//!
//! # Layout
//! * [`Store`]: all of it
//! * [`EventLog`]: logs of events: created, appended to, read, waited for
//! * [`Ownership`]: who may append
//! * [`Notices`]: what processes that share it tell each other
//! * [`Inbox`]: what others tell the owner of a log
//! * [`Blobs`]: large bodies beside a log
//! * [`Catalog`]: the logs there are, and which of them go
//! * [`Accounts`]: whom logs belong to, and the credentials that prove it; [`Budget`]: what they may spend
//! * [`follow`], [`tail`]: readers of a log, and of a run, from any position, without gap or repeat
//! * [`Memory`]: a store that ends with its process
//! * [`Sqlite`]: a store in a directory, for one process
//! * [`Postgres`]: a store in a database, for any number of processes

mod accounts;
mod blobs;
mod budget;
mod catalog;
mod error;
mod event_log;
mod heads;
mod inbox;
mod memory;
mod notices;
mod owners;
mod ownership;
mod postgres;
mod record;
mod sql;
mod sqlite;
mod state;
mod tail;

pub use accounts::{Account, Accounts, Credential, CredentialKind, DEFAULT_ACCOUNT};
pub use blobs::{BlobId, Blobs};
pub use budget::{Budget, Spent, until_tomorrow};
pub use catalog::{Catalog, Entry, Query, Retention};
pub use error::Error;
pub use event_log::{Batch, Creation, EventLog, Head, Idempotency, Kind, Lease, Meta, NewLog};
pub use inbox::{Inbox, Post, Posted};
pub use memory::Memory;
pub use notices::Notices;
pub use ownership::{OwnerId, Ownership};
pub use postgres::{OpenError as PostgresError, Postgres};
pub use sqlite::{OpenError as SqliteError, Sqlite};
pub use state::State;
pub use tail::{follow, tail};

/// Everything that is kept.
pub trait Store:
    EventLog + Ownership + Notices + Inbox + Blobs + Catalog + Accounts + std::fmt::Debug
{
}

impl<T: EventLog + Ownership + Notices + Inbox + Blobs + Catalog + Accounts + std::fmt::Debug> Store for T {}
