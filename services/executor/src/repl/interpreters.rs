//! The interpreters of all sessions, by name.

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Mutex as TurnMutex, time::Instant};

use super::{
    evaluate::{Evaluated, Host, Lost, evaluate},
    message::{LONGEST, Limits},
    process::Process,
};
use crate::{
    process::{Launcher, Life},
    workspace::Session,
};

/// How many there may be.
const MOST: usize = 64;
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
    #[error("{MOST} interpreters run here already; try again later")]
    Full,
    #[error("the interpreter could not be started: {0}")]
    NotStarted(#[from] io::Error),
}

/// The interpreters of one executor.
#[derive(Debug)]
pub(crate) struct Interpreters {
    limits: Limits,
    table: Mutex<HashMap<Name, Arc<Seat>>>,
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
        Self { limits, table: Mutex::default() }
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
        let seat = self.seat(name, place)?;
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
        self.table().retain(|name, _| name.session != *session);
    }

    /// Ends those that nobody has used for long.
    pub(crate) fn sweep(&self) {
        self.table().retain(|_, seat| Arc::strong_count(seat) > 1 || seat.used().elapsed() < IDLE);
    }

    fn seat(&self, name: Name, place: Place) -> Result<Arc<Seat>, Failed> {
        let mut table = self.table();
        match place {
            Place::Known => table.get(&name).cloned().ok_or(Failed::Unknown),
            Place::New(_) if table.len() >= MOST && !table.contains_key(&name) => Err(Failed::Full),
            Place::New(context) => {
                let seat = Seat { context, used: Mutex::new(Instant::now()), process: TurnMutex::default() };
                let seat = Arc::new(seat);
                table.insert(name, Arc::clone(&seat));
                Ok(seat)
            }
        }
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
