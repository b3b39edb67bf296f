//! Places where sessions keep files: one directory each, gone with the session.
//!
//! * `home`: the directory of one executor, which holds them all
//! * `files`: what can be done with the files of one, and with nothing outside of it
//! * `view`: how a model sees a file
//! * `patch`: how it changes some
//! * `blobs`: long texts beside the files
//! * `usage`: how much is in one

mod blobs;
mod files;
mod home;
pub(crate) mod patch;
mod usage;
mod view;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

pub(crate) use blobs::{Digest, Rejected};
pub(crate) use files::{Files, Refused};
pub(crate) use view::{Range, View};

use crate::folder::Folder;
use blobs::Blobs;
use home::Home;

/// How often unused workspaces are looked for.
pub(crate) const SWEEP: Duration = Duration::from_secs(60);
/// How long one is kept that is empty: a call that came after the end of its session leaves such a one.
const EMPTY: Duration = Duration::from_secs(10);

/// What workspaces may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of all files of one.
    pub(crate) bytes: u64,
    /// How many there may be.
    pub(crate) most: usize,
    /// How long one is kept that nobody uses.
    pub(crate) idle: Duration,
}

/// Names a session. An account sees only its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Session {
    pub(crate) account: String,
    pub(crate) id: String,
}

/// Why a session has no workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    #[error("the call belongs to no session, and files are kept for sessions")]
    NoSession,
    #[error("{0} sessions keep files here already; try again later")]
    Full(usize),
    #[error("no directory for its files: {0}")]
    Io(#[from] io::Error),
}

/// The workspaces of one executor.
#[derive(Debug)]
pub(crate) struct Workspaces {
    state: PathBuf,
    limits: Limits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    home: Option<Home>,
    open: HashMap<Session, (Arc<Workspace>, Instant)>,
}

impl Workspaces {
    /// None yet. They will be below `state`.
    pub(crate) fn new(state: PathBuf, limits: Limits) -> Self {
        Self { state, limits, table: Mutex::default() }
    }

    /// The workspace of a session, made when it is first asked for. May block.
    pub(crate) fn open(&self, session: &Session) -> Result<Arc<Workspace>, Unavailable> {
        if session.id.is_empty() {
            return Err(Unavailable::NoSession);
        }
        let mut table = self.table();
        if let Some((workspace, used)) = table.open.get_mut(session) {
            *used = Instant::now();
            return Ok(Arc::clone(workspace));
        }
        if table.open.len() >= self.limits.most {
            return Err(Unavailable::Full(self.limits.most));
        }
        if table.home.is_none() {
            table.home = Some(Home::make(&self.state)?);
        }
        let Some(home) = &table.home else { return Err(io::Error::from(io::ErrorKind::NotFound).into()) };
        let workspace = Arc::new(Workspace::make(home.path(), self.limits.bytes)?);
        table.open.insert(session.clone(), (Arc::clone(&workspace), Instant::now()));
        Ok(workspace)
    }

    /// Forgets a session. Its files go when the last command that uses them has ended. May block.
    pub(crate) fn close(&self, session: &Session) {
        let gone = self.table().open.remove(session);
        drop(gone);
    }

    /// Forgets the sessions that nobody has used for long. May block.
    pub(crate) fn sweep(&self) {
        let idle = self.limits.idle;
        let is_old = |(workspace, used): &mut (Arc<Workspace>, Instant)| {
            let unused = used.elapsed();
            Arc::strong_count(workspace) == 1 && (unused >= idle || (unused >= EMPTY && workspace.is_empty()))
        };
        let gone: Vec<_> = self.table().open.extract_if(|_, entry| is_old(entry)).collect();
        drop(gone);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of one session. They are removed with the last handle.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) files: Files,
    pub(crate) blobs: Blobs,
    path: PathBuf,
    quota: u64,
    _directory: Folder,
}

impl Workspace {
    fn make(home: &Path, quota: u64) -> io::Result<Self> {
        let directory = Folder::make(home, "w-")?;
        // Without links on the way: the sandbox compares it with other paths.
        let path = directory.path().canonicalize()?;
        Ok(Self {
            files: Files::new(&path, quota)?,
            blobs: Blobs::new(home, quota),
            path,
            quota,
            _directory: directory,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn is_empty(&self) -> bool {
        let files = std::fs::read_dir(&self.path).map(|mut files| files.next().is_some());
        files.is_ok_and(|some| !some) && self.blobs.is_empty()
    }

    /// Returns when its files have taken more than they may.
    pub(crate) async fn overflows(self: Arc<Self>) -> u64 {
        const PERIOD: Duration = Duration::from_millis(250);
        loop {
            tokio::time::sleep(PERIOD).await;
            let own = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || own.overflow()).await;
            if let Ok(Some(quota)) = looked {
                return quota;
            }
        }
    }

    /// What it may hold, if it holds more.
    pub(crate) fn overflow(&self) -> Option<u64> {
        usage::exceeds(&self.path, self.quota).then_some(self.quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str) -> Session {
        Session { account: "a".to_owned(), id: id.to_owned() }
    }

    #[test]
    fn each_session_has_its_own_directory_as_long_as_it_lasts() {
        let state = tempfile::tempdir().unwrap();
        let limits = Limits { bytes: 1 << 20, most: 2, idle: Duration::ZERO };
        let all = Workspaces::new(state.path().to_owned(), limits);
        assert!(matches!(all.open(&session("")), Err(Unavailable::NoSession)));
        let (one, two) = (all.open(&session("1")).unwrap(), all.open(&session("2")).unwrap());
        assert!(one.path() != two.path() && Arc::ptr_eq(&one, &all.open(&session("1")).unwrap()));
        assert!(matches!(all.open(&session("3")), Err(Unavailable::Full(2))));

        all.close(&session("1"));
        assert!(one.path().exists(), "it is in use");
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());

        all.sweep();
        assert!(two.path().exists(), "it is in use");
        let path = two.path().to_owned();
        drop(two);
        all.sweep();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_lost_executor_left_is_removed_and_what_another_has_is_not() {
        let state = tempfile::tempdir().unwrap();
        let limits = Limits { bytes: 1 << 20, most: 2, idle: Duration::ZERO };
        let living = Workspaces::new(state.path().to_owned(), limits);
        let kept = living.open(&session("1")).unwrap();
        let lost = state.path().join("workspaces/e-lost/w-1");
        std::fs::create_dir_all(&lost).unwrap();
        let others = Workspaces::new(state.path().to_owned(), limits);
        let other = others.open(&session("1")).unwrap();
        assert!(kept.path().exists() && other.path().exists() && !lost.exists());
    }
}
