//! A store in a PostgreSQL database, for any number of processes.
//!
//! # Layout
//! * `connect`: connections; `failure`: what passes by itself and is tried again
//! * `schema`: the tables
//! * `appender`: appends of all logs of this process, in few transactions
//! * `listener`: what other processes write
//! * `log`: statements about one log; the other files are the traits

mod accounts;
mod appender;
mod blobs;
mod catalog;
mod connect;
mod event_log;
mod failure;
mod inbox;
mod listener;
mod log;
mod notices;
mod ownership;
mod schema;

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{Object, Pool};
use tokio::time::timeout;

use crate::{Error, heads::Heads};
use appender::Appender;
use connect::Address;
use failure::{Failure, Tries};
use listener::Listener;

/// Parts in which processes count what is spent, each mostly for itself.
const PARTS: i16 = 16;
/// How long one try of a request may take.
const REQUEST: Duration = Duration::from_secs(20);

/// A store in a database that several processes share.
#[derive(Debug)]
pub struct Postgres {
    database: Database,
    appender: Appender,
    heads: Arc<Heads>,
    part: i16,
    _listener: Listener,
}

/// Why a database cannot be used. The URL is not in it: it may have a password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL cannot be read.
    #[error("the URL of the database must have the form postgres://USER@HOST:PORT/DATABASE")]
    Url,
    /// There is no way to check the server's certificate.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The pool cannot be set up.
    #[error("cannot set up the pool of connections")]
    Pool(#[from] deadpool_postgres::BuildError),
    /// It was made by a newer version.
    #[error("the database needs a program that knows version {found}, and this one knows up to {known}")]
    Newer {
        /// The version that is needed.
        found: i32,
        /// The newest that is known.
        known: i32,
    },
    /// It cannot be reached.
    #[error("cannot reach the database")]
    Unavailable(#[source] Error),
    /// It refuses.
    #[error("the database refuses")]
    Database(#[from] tokio_postgres::Error),
}

impl Postgres {
    /// Connects to a database and brings its tables up to date. `password` is for a URL without one.
    ///
    /// # Errors
    /// If the database cannot be reached, or is not for this version.
    pub async fn connect(url: &str, password: Option<&str>) -> Result<Self, OpenError> {
        let address = Address::parse(url, password)?;
        let database = Database { pool: address.pool()? };
        let mut client =
            database.run(|client, _| async { Ok(client) }).await.map_err(OpenError::Unavailable)?;
        schema::prepare(&mut client).await?;
        let heads = Arc::<Heads>::default();
        let part = fastrand::i16(0..PARTS);
        Ok(Self {
            appender: Appender::start(database.clone(), Arc::clone(&heads), part),
            _listener: Listener::start(address, database.clone(), Arc::clone(&heads)),
            database,
            heads,
            part,
        })
    }
}

/// The database, with patience.
#[derive(Clone, Debug)]
struct Database {
    pool: Pool,
}

impl Database {
    /// Does some work, and does it again where it failed for a reason that passes. Then `again` is true: what was
    /// tried before may have happened.
    async fn run<T, W, F>(&self, work: W) -> Result<T, Error>
    where
        W: Fn(Object, bool) -> F + Send + Sync,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let mut tries = Tries::new();
        let mut again = false;
        loop {
            match self.once(&work, again).await {
                Ok(done) => return Ok(done),
                Err(failure) if tries.again(&failure).await => again = true,
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    async fn once<T, W, F>(&self, work: &W, again: bool) -> Result<T, Failure>
    where
        W: Fn(Object, bool) -> F + Send + Sync,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let client = self.pool.get().await?;
        timeout(REQUEST, work(client, again)).await?
    }
}
