//! Connections that only read, each for one reader at a time.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::Error;

/// Readers at the same time; more of them wait.
const SEATS: usize = 8;
/// How long a reader waits for a lock. Only a checkpoint at the start could make it wait at all.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Readers {
    database: PathBuf,
    seats: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(database: PathBuf) -> Self {
        Self { database, seats: Arc::new(Semaphore::new(SEATS)), idle: Arc::default() }
    }

    /// Reads, outside the threads that must not block.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let stopped = || Error::Unavailable("the store is closed".to_owned());
        let seat = Arc::clone(&self.seats).acquire_owned().await.map_err(|_| stopped())?;
        let (database, idle) = (self.database.clone(), Arc::clone(&self.idle));
        let reading = spawn_blocking(move || {
            let _seat = seat;
            let spare = lock(&idle).pop();
            let connection = match spare {
                Some(connection) => connection,
                None => open(&database)?,
            };
            let read = work(&connection);
            lock(&idle).push(connection);
            read
        });
        reading.await.map_err(|_| stopped())?
    }
}

fn open(database: &std::path::Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

fn lock(idle: &Mutex<Vec<Connection>>) -> MutexGuard<'_, Vec<Connection>> {
    // Nothing in here panics half-way through a change.
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
