//! The interpreters of all sessions, by name. Where there are too many, new ones wait for an end of others.

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex as TurnMutex, Notify},
    time::{Instant, timeout},
};

use super::{
    evaluate::{Evaluated, Host, Lost, evaluate},
    message::{LONGEST, Limits},
    process::Process,
};
use crate::{
    process::{Launcher, Life},
    workspace::Session,
};

/// How many there may be, and how many of one account.
const MOST: usize = 64;
const MOST_OF_ONE: usize = 48;
/// How long a new one waits for its place. Those that have one may be waiting for it.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(900);

/// Names an interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) session: Session,
    /// Within the session.
    pub(crate) own: String,
}

/// Which interpreter is to be used.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A new one, whose variable `context` is what the file holds, or empty.
    New(Option<Arc<File>>),
    /// The one that was used before.
    Known,
}

/// Why an evaluation came to no end of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("the interpreter is lost, and its variables with it")]
    Unknown,
    #[error("the interpreter is lost, and its variables with it: {0}. It starts anew with the next code")]
    Lost(#[from] Lost),
    #[error("too many interpreters ran here for {} seconds; try again later", PATIENCE.as_secs())]
    Full,
    #[error("the interpreter could not be started: {0}")]
    NotStarted(#[from] io::Error),
}

/// The interpreters of one executor.
#[derive(Debug)]
pub(crate) struct Interpreters {
    limits: Limits,
    table: Mutex<HashMap<Name, Arc<Seat>>>,
    /// Told when one has gone.
    freed: Notify,
}

/// One interpreter. Its evaluations wait for each other.
#[derive(Debug)]
struct Seat {
    context: Option<Arc<File>>,
    used: Mutex<Instant>,
    /// Empty until it is first used, and after it was lost.
    process: TurnMutex<Option<Process>>,
}

impl Interpreters {
    /// None yet. Each evaluation may take so much.
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, table: Mutex::default(), freed: Notify::new() }
    }

    /// Runs code. `began` is told where before it does.
    pub(crate) async fn evaluate(
        &self,
        launcher: &Launcher,
        name: Name,
        place: Place,
        code: &str,
        host: &impl Host,
        began: impl FnOnce(&Life),
    ) -> Result<Evaluated, Failed> {
        let seat = self.seat(name, place).await?;
        let mut turn = seat.process.lock().await;
        let mut process = match turn.take() {
            Some(process) => process,
            None => {
                let context = seat.context.clone();
                let text = tokio::task::spawn_blocking(move || text_of(context.as_deref())).await;
                let text = text.unwrap_or_else(|error| Err(io::Error::other(error)))?;
                Process::start(launcher, self.limits, &text).await?
            }
        };
        began(&process.life);
        let evaluated = evaluate(&mut process, self.limits, code, host).await?;
        *turn = Some(process);
        *seat.used() = Instant::now();
        Ok(evaluated)
    }

    /// Ends those of a session.
    pub(crate) fn close(&self, session: &Session) {
        self.keep(|name, _| name.session != *session);
    }

    /// Ends one.
    pub(crate) fn end(&self, ended: &Name) {
        self.keep(|name, _| name != ended);
    }

    /// Ends those that nobody has used for long.
    pub(crate) fn sweep(&self) {
        self.keep(|_, seat| Arc::strong_count(seat) > 1 || seat.used().elapsed() < IDLE);
    }

    fn keep(&self, stays: impl Fn(&Name, &Arc<Seat>) -> bool) {
        self.table().retain(|name, seat| stays(name, seat));
        self.freed.notify_waiters();
    }

    async fn seat(&self, name: Name, place: Place) -> Result<Arc<Seat>, Failed> {
        let Place::New(context) = place else {
            return self.table().get(&name).cloned().ok_or(Failed::Unknown);
        };
        let seat = Seat { context, used: Mutex::new(Instant::now()), process: TurnMutex::default() };
        let seat = Arc::new(seat);
        let taken = async {
            loop {
                // It hears of all that go from here on.
                let freed = self.freed.notified();
                if self.take(&name, &seat) {
                    break;
                }
                freed.await;
            }
        };
        timeout(PATIENCE, taken).await.map_err(|_| Failed::Full)?;
        Ok(seat)
    }

    /// Takes a place, if there is one.
    fn take(&self, name: &Name, seat: &Arc<Seat>) -> bool {
        let mut table = self.table();
        let account = &name.session.account;
        let of_account = table.keys().filter(|other| other.session.account == *account).count();
        let is_free = (table.len() < MOST && of_account < MOST_OF_ONE) || table.contains_key(name);
        if is_free {
            table.insert(name.clone(), Arc::clone(seat));
        }
        is_free
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Name, Arc<Seat>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text_of(file: Option<&File>) -> io::Result<Vec<u8>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if length >= LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut text = vec![0; length];
    file.read_exact_at(&mut text, 0)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(account: &str, number: usize) -> Name {
        let session = Session { account: account.to_owned(), id: "session".to_owned() };
        Name { session, own: format!("run/{number}") }
    }

    fn interpreters() -> Interpreters {
        Interpreters::new(Limits { memory: 1 << 20, work_ms: 1000, kilosteps: 1 })
    }

    async fn fill(interpreters: &Interpreters, account: &str, number: usize) {
        for number in 0..number {
            interpreters.seat(name(account, number), Place::New(None)).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_account_leaves_places_to_others() {
        let interpreters = interpreters();
        fill(&interpreters, "one", MOST_OF_ONE).await;
        let more = interpreters.seat(name("one", MOST), Place::New(None)).await;
        assert!(matches!(more, Err(Failed::Full)));
        let unknown = interpreters.seat(name("one", MOST), Place::Known).await;
        assert!(matches!(unknown, Err(Failed::Unknown)), "it has not begun");
        fill(&interpreters, "two", MOST - MOST_OF_ONE).await;
        assert!(matches!(interpreters.seat(name("two", MOST), Place::New(None)).await, Err(Failed::Full)));
        fill(&interpreters, "one", 1).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_one_takes_the_place_of_one_that_ends() {
        let interpreters = interpreters();
        fill(&interpreters, "one", MOST_OF_ONE).await;
        let waits = interpreters.seat(name("one", MOST), Place::New(None));
        let ends = async { interpreters.end(&name("one", 7)) };
        let (waited, ()) = tokio::join!(waits, ends);
        waited.unwrap();
        assert!(matches!(interpreters.seat(name("one", 7), Place::Known).await, Err(Failed::Unknown)));
    }
}
