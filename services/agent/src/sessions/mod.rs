//! Sessions: conversations that last, each a log of its own, whose entries are the events that its readers get.
//!
//! # Layout
//! * this file: sessions as objects; who works on which
//! * `actor`: the owner of a session while a turn goes on
//! * `turn`, `project`: a turn, and its runs as events of the session
//! * `record`: the entries of the log
//! * `post`: what is said to a session
//! * `read`: its events, as readers get them
//! * `ids`, `words`, `failure`: names, messages, errors

mod actor;
mod failure;
pub(crate) mod ids;
mod post;
mod project;
pub(crate) mod read;
mod record;
mod turn;
mod words;

use std::{
    collections::{HashMap, HashSet},
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{LogId, RunId};
use prost::Message as _;
use store::{Creation, Entry, Idempotency, Kind, Meta, NewLog, OwnerId, Query, State, Store};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wire::session::{Details, Phase, Session, SessionSettings, SessionStatus, event::Data};

use crate::runs::Runs;
use actor::Actor;
pub(crate) use post::Refused;
use project::Providers;
use record::Standing;

/// Owner of sessions that rest.
const NOBODY: &str = "nobody";

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It does not exist, or is another account's.
    #[error("Session not found: {0}")]
    Unknown(String),
    #[error("this idempotency key belongs to another request: use a new key for a new request")]
    OtherRequest,
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// All sessions.
pub(crate) struct Sessions {
    runs: Arc<Runs>,
    /// Those that are worked on here.
    active: Mutex<HashSet<LogId>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Sessions {
    pub(crate) fn new(runs: Arc<Runs>) -> Self {
        let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
        Self { runs, active: Mutex::default(), tasks, closing }
    }

    fn runs(&self) -> &Runs {
        &self.runs
    }

    fn store(&self) -> Arc<dyn Store> {
        self.runs.log()
    }

    fn providers(&self) -> Providers {
        let infos = self.runs.models().models().iter().map(|model| model.info());
        let providers: HashMap<_, _> = infos.map(|info| (info.name.clone(), info.provider.clone())).collect();
        Arc::new(providers)
    }

    fn active(&self) -> MutexGuard<'_, HashSet<LogId>> {
        // Nothing in here panics half-way through a change.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a session.
    pub(crate) async fn create(
        &self,
        account: &str,
        principal: &str,
        settings: SessionSettings,
        idempotency: Option<Idempotency>,
    ) -> Result<Session, Error> {
        let (title, principal) = (settings.title.clone(), principal.to_owned());
        let details = Details { settings: Some(settings), principal }.encode_to_vec();
        let meta = Meta { account: account.to_owned(), kind: Kind::Session, title, details };
        let (id, owner) = (ids::new_session(), OwnerId::new(NOBODY));
        let new = NewLog { id: id.clone(), owner, meta, idempotency, events: Vec::new() };
        let id = match self.store().create(new).await? {
            Creation::New(_) => id,
            Creation::Existing(log) => log,
            Creation::Mismatch(_) => return Err(Error::OtherRequest),
        };
        self.describe(self.find(id.as_str(), account).await?).await
    }

    /// A session of an account.
    pub(crate) async fn get(&self, id: &str, account: &str) -> Result<Session, Error> {
        self.describe(self.find(id, account).await?).await
    }

    /// Sessions of an account, newest first: those after one, or from the newest.
    pub(crate) async fn list(
        &self,
        account: &str,
        after: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Session>, Error> {
        let before = if after.is_empty() { None } else { Some(self.find(after, account).await?.number) };
        let query = Query { account: account.to_owned(), kind: Kind::Session, before, limit };
        let mut sessions = Vec::new();
        for entry in self.store().list(query).await? {
            sessions.push(self.describe(entry).await?);
        }
        Ok(sessions)
    }

    /// Changes what is known of a session.
    pub(crate) async fn update(
        &self,
        id: &str,
        account: &str,
        settings: SessionSettings,
    ) -> Result<Session, Error> {
        let entry = self.find(id, account).await?;
        let kept = details(&entry);
        let before = kept.settings.unwrap_or_default();
        let SessionSettings { harness_id, agent_id, .. } = before;
        let title = settings.title.clone();
        let settings = Some(SessionSettings { harness_id, agent_id, ..settings });
        let details = Details { settings, ..kept }.encode_to_vec();
        self.store().describe(&entry.log, title, details).await?;
        self.get(id, account).await
    }

    /// Deletes a session with its runs, and stops what it does.
    pub(crate) async fn delete(&self, id: &str, account: &str) -> Result<(), Error> {
        let entry = self.find(id, account).await?;
        let mut runs = HashSet::new();
        record::range(&*self.store(), &entry.log, 0, entry.position, |entry| {
            runs.insert(entry.record.run_id);
        })
        .await?;
        self.store().delete(&entry.log).await?;
        for run in runs.into_iter().filter(|run| !run.is_empty()).map(RunId::new) {
            if let Some(found) = self.runs.find(&run, account).await? {
                self.runs.cancel(found, "the session was deleted".to_owned()).await?;
            }
            self.store().delete(&LogId::from(&run)).await?;
        }
        Ok(())
    }

    /// The log of a session of an account. A session of another account does not exist.
    async fn find(&self, id: &str, account: &str) -> Result<Entry, Error> {
        let unknown = || Error::Unknown(id.to_owned());
        let log = LogId::new(id);
        if !ids::is_session(&log) {
            return Err(unknown());
        }
        match self.store().entry(&log).await {
            Ok(entry) if entry.meta.account == account && entry.meta.kind == Kind::Session => Ok(entry),
            Ok(_) | Err(store::Error::UnknownLog(_)) => Err(unknown()),
            Err(error) => Err(error.into()),
        }
    }

    async fn details(&self, log: &LogId) -> Result<Details, store::Error> {
        Ok(details(&self.store().entry(log).await?))
    }

    async fn describe(&self, entry: Entry) -> Result<Session, Error> {
        let standing = Standing::of(&*self.store(), &entry.log, entry.position).await?;
        let status = match (entry.state, standing.phase) {
            (State::Empty, _) => SessionStatus::Started,
            (State::Running | State::Ended(_), Phase::Waiting) => SessionStatus::Waiting,
            (State::Running | State::Ended(_), Phase::Active) => SessionStatus::Active,
            (State::Running | State::Ended(_), Phase::Idle | Phase::Unspecified) => SessionStatus::Idle,
        };
        let waiting = standing.phase == Phase::Waiting;
        let (calls, approvals) = if waiting { standing.pending() } else { Default::default() };
        Ok(Session {
            id: entry.log.as_str().to_owned(),
            settings: details(&entry).settings,
            status: status.into(),
            turn_id: standing.turn_id().unwrap_or_default().to_owned(),
            created_at: Some(wire::time(entry.created)),
            updated_at: Some(wire::time(entry.updated)),
            usage: standing.rest.usage,
            last_sequence: entry.position,
            pending_tool_calls: calls,
            pending_approvals: approvals,
        })
    }

    /// Works on a session, unless somebody does.
    pub(crate) fn wake(self: &Arc<Self>, log: LogId) {
        if !self.active().insert(log.clone()) {
            return;
        }
        let sessions = Arc::clone(self);
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            let worked = closing.run_until_cancelled(Box::pin(sessions.work(&log))).await;
            sessions.active().remove(&log);
            match worked {
                // It may have got a letter since.
                Some(Ok(true)) => sessions.wake_for_letters(log).await,
                Some(Ok(false)) | None => {}
                Some(Err(error)) => tracing::warn!(session = %log, %error, "a session cannot be worked on"),
            }
        });
    }

    async fn wake_for_letters(self: &Arc<Self>, log: LogId) {
        if self.store().posted(&log, 0).await.is_ok_and(|letters| !letters.is_empty()) {
            self.wake(log);
        }
    }

    /// Works on a session until there is nothing to do. False if somebody else does.
    async fn work(self: &Arc<Self>, log: &LogId) -> Result<bool, store::Error> {
        let owner = self.runs.owner().await?;
        let Some(lease) = self.store().claim(log, &owner).await? else { return Ok(false) };
        let held = lease.clone();
        let Details { settings, principal } = self.details(log).await?;
        let actor = Actor::new(Arc::clone(self), lease, principal, settings.unwrap_or_default()).await;
        let worked = match actor {
            Ok(actor) => actor.work().await,
            Err(error) => Err(error),
        };
        if worked.is_err() {
            // Whoever looks for abandoned sessions finds it.
            self.store().release(held).await?;
        }
        worked.map(|()| true)
    }

    /// Leaves the sessions here to others.
    pub(crate) async fn shutdown(&self) {
        self.tasks.close();
        self.closing.cancel();
        self.tasks.wait().await;
    }
}

fn details(entry: &Entry) -> Details {
    Details::decode(entry.meta.details.as_slice()).unwrap_or_default()
}

/// The name of the event that an entry is.
fn name(entry: &record::Entry) -> &'static str {
    entry.data().map_or("", Data::name)
}
