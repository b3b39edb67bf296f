//! One thread writes. What is asked of it while it commits shares the next commit: a lone writer never waits for
//! company, and many writers pay for few commits.

use std::{fs::File, io, thread};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::Error;

/// Requests that wait; whoever makes more of them waits.
const QUEUE: usize = 256;
/// Requests that share a commit.
const GROUP: usize = 128;

/// Does its part of a transaction.
type Job = Box<dyn FnOnce(&Connection) -> Ack + Send>;
/// Answers once the transaction has ended.
type Ack = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// The thread. It ends when this is dropped, after what it was asked before.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts it. It keeps `lock` for as long as it may write.
    pub(super) fn start(connection: Connection, lock: File) -> io::Result<Self> {
        let (jobs, asked) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new().name("store".to_owned()).spawn(move || {
            write_all(connection, asked);
            drop(lock);
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Does some work in a transaction: all of it or nothing. Returns once it is on disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.write_then(work, |_| ()).await
    }

    /// Does some work, and something more once it is on disk, even if nobody waits for the answer any longer.
    pub(super) async fn write_then<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let done = alone(connection, work);
            Box::new(move |committed| {
                let result = committed.and(done);
                if let Ok(value) = &result {
                    then(value);
                }
                // Whoever asked may have left.
                let _ = reply.send(result);
            })
        });
        let stopped =
            || Error::Unavailable("nothing can be written to the data directory any more".to_owned());
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It ends after one commit at most. A panic has been reported by its thread.
            let _ = thread.join();
        }
    }
}

/// Undoes what a piece of work did if it fails, and nothing else of the transaction.
fn alone<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
    let run = |statement| connection.prepare_cached(statement)?.execute([]).map_err(Error::from);
    run("SAVEPOINT work")?;
    let done = work(connection);
    if done.is_err() {
        run("ROLLBACK TO work")?;
    }
    run("RELEASE work")?;
    done
}

fn write_all(mut connection: Connection, mut asked: mpsc::Receiver<Job>) {
    while let Some(first) = asked.blocking_recv() {
        let mut acks = Vec::new();
        let committed = write_group(&mut connection, first, &mut asked, &mut acks);
        let lost = committed.as_ref().is_err_and(is_lost);
        if let Err(error) = &committed {
            tracing::error!(%error, "nothing was written to the data directory");
        }
        let committed = committed.map_err(Error::from);
        for ack in acks {
            ack(committed.clone());
        }
        if lost {
            // What the disk holds is not known any more, and asking it again could get a wrong yes.
            return;
        }
    }
}

fn write_group(
    connection: &mut Connection,
    first: Job,
    asked: &mut mpsc::Receiver<Job>,
    acks: &mut Vec<Ack>,
) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    acks.push(first(&transaction));
    while acks.len() < GROUP && !transaction.is_autocommit() {
        let Ok(next) = asked.try_recv() else { break };
        acks.push(next(&transaction));
    }
    transaction.commit()
}

/// Whether the disk has failed.
fn is_lost(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt))
}
