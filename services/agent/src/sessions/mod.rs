//! Sessions: conversations that last, each a log of its own, whose entries are the events that its readers get.
//!
//! # Layout
//! * this file: sessions as objects; who works on which
//! * `agents`, `images`: what is kept beside them
//! * `actor`: the owner of a session while a turn goes on
//! * `turn`, `project`: a turn, and its runs as events of the session
//! * `record`: the entries of the log
//! * `standing`: what people have allowed for later calls
//! * `post`: what is said to a session
//! * `read`, `wanted`, `prompts`: its events, as readers get them, which of them, with what the model was told
//! * `trail`: what stays of a session that is deleted
//! * `ids`, `words`, `failure`: names, messages, errors

mod actor;
mod agents;
mod failure;
pub(crate) mod ids;
mod images;
mod post;
mod project;
mod prompts;
pub(crate) mod read;
mod record;
mod standing;
mod trail;
mod turn;
pub(crate) mod wanted;
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

use crate::runs::{Runs, give_up};
use actor::Actor;
pub use failure::Disclosure;
pub(crate) use post::Refused;
use project::Providers;
use record::Standing;

/// Owner of sessions that rest.
const NOBODY: &str = "nobody";

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It does not exist, or is another account's.
    #[error("{what} not found: {id}", what = named(*.0), id = .1)]
    Unknown(Kind, String),
    #[error("it has changed meanwhile: look at it again")]
    Changed,
    #[error("this idempotency key belongs to another request: use a new key for a new request")]
    OtherRequest,
    #[error(transparent)]
    Store(#[from] store::Error),
}

fn named(kind: Kind) -> &'static str {
    match kind {
        Kind::Run => "Run",
        Kind::Session => "Session",
        Kind::Agent => "Agent",
        Kind::Image => "Image",
        Kind::Trail => "Trail",
    }
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

    fn runs(&self) -> &Arc<Runs> {
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
        details: Details,
        idempotency: Option<Idempotency>,
    ) -> Result<Session, Error> {
        let title = details.settings.as_ref().map(|settings| settings.title.clone()).unwrap_or_default();
        let details = details.encode_to_vec();
        let id =
            self.keep(ids::new(ids::SESSION), account, Kind::Session, (title, details), idempotency).await?;
        self.get(id.as_str(), account).await
    }

    /// Keeps something new of an account, with its title and its details, or finds what the same request has made.
    async fn keep(
        &self,
        id: LogId,
        account: &str,
        kind: Kind,
        (title, details): (String, Vec<u8>),
        idempotency: Option<Idempotency>,
    ) -> Result<LogId, Error> {
        let meta = Meta { account: account.to_owned(), kind, title, details };
        let new =
            NewLog { id: id.clone(), owner: OwnerId::new(NOBODY), meta, idempotency, events: Vec::new() };
        match self.store().create(new).await? {
            Creation::New(_) => Ok(id),
            Creation::Existing(log) => Ok(log),
            Creation::Mismatch(_) => Err(Error::OtherRequest),
        }
    }

    /// A session of an account.
    pub(crate) async fn get(&self, id: &str, account: &str) -> Result<Session, Error> {
        self.describe(self.find(id, account).await?).await
    }

    /// Sessions of an account, newest first: those after one, or from the newest.
    pub(crate) async fn list(
        &self,
        account: &str,
        only: &[String],
        after: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Session>, Error> {
        let (mut sessions, mut after) = (Vec::new(), after.to_owned());
        loop {
            let entries = self.listed(account, Kind::Session, &after, limit).await?;
            let is_last = entries.len() < limit.get();
            if let Some(last) = entries.last() {
                last.log.as_str().clone_into(&mut after);
            }
            for entry in entries.into_iter().filter(|entry| reaches_only(entry, only)) {
                sessions.push(self.describe(entry).await?);
                if sessions.len() == limit.get() {
                    return Ok(sessions);
                }
            }
            if is_last {
                return Ok(sessions);
            }
        }
    }

    async fn listed(
        &self,
        account: &str,
        kind: Kind,
        after: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Entry>, Error> {
        let before = match after {
            "" => None,
            after => Some(self.look_up(after, account, kind).await?.number),
        };
        Ok(self.store().list(Query { account: account.to_owned(), kind, before, limit }).await?)
    }

    /// Changes what is known of a session, which was this before, if that is said.
    pub(crate) async fn update(
        &self,
        id: &str,
        account: &str,
        settings: SessionSettings,
        before: Option<SessionSettings>,
    ) -> Result<Session, Error> {
        let entry = self.find(id, account).await?;
        let kept = details(&entry);
        let now = kept.settings.unwrap_or_default();
        if before.is_some_and(|before| before != now) {
            return Err(Error::Changed);
        }
        let SessionSettings { harness_id, agent_id, .. } = now;
        let title = settings.title.clone();
        let settings = Some(SessionSettings { harness_id, agent_id, ..settings });
        let details = Details { settings, ..kept }.encode_to_vec();
        self.amend(entry, title, details).await?;
        self.get(id, account).await
    }

    /// Changes what is kept of something that still is what it was.
    async fn amend(&self, was: Entry, title: String, details: Vec<u8>) -> Result<(), Error> {
        match self.store().amend(&was.log, was.meta.details, title, details).await? {
            true => Ok(()),
            false => Err(Error::Changed),
        }
    }

    /// Deletes a session with its runs and its files, and stops what it does, though whoever wants that leaves. What
    /// auditors read of it stays.
    pub(crate) async fn delete(self: &Arc<Self>, id: &str, account: &str) -> Result<(), Error> {
        let entry = self.find(id, account).await?;
        let sessions = Arc::clone(self);
        let deleting = async move { sessions.delete_whole(entry).await };
        let deleting = self.closing.clone().run_until_cancelled_owned(deleting);
        let deleted = self.tasks.spawn(deleting).await.ok().flatten();
        let cut_short = || Err(store::Error::Unavailable("this agent is closing".to_owned()).into());
        deleted.unwrap_or_else(cut_short)
    }

    /// The session goes last, and before it the runs, which tell that there are files: until then all of this can be done
    /// again. A run that the session begins meanwhile is its owner's.
    async fn delete_whole(&self, session: Entry) -> Result<(), Error> {
        let (store, Entry { log, position, meta, .. }) = (self.store(), session);
        let mut runs = HashSet::new();
        record::range(&*store, &log, 0, position, |entry| {
            runs.insert(entry.record.run_id);
        })
        .await?;
        let runs: Vec<_> = runs.into_iter().filter(|run| !run.is_empty()).map(RunId::new).collect();
        let mut has_files = false;
        for run in &runs {
            has_files |= turn::had_files(&*store, run).await?;
            self.stop(run, &meta.account).await?;
        }
        let forget_files = async || {
            if has_files {
                self.runs.tools().forget(&meta.account, log.as_str()).await;
            }
        };
        forget_files().await;
        for run in &runs {
            self.delete_run(run, &meta.account).await?;
        }
        store.delete(&log).await?;
        // A run that did not hear of it at once may have written more.
        forget_files().await;
        Ok(())
    }

    /// Stops a run of a session that goes.
    async fn stop(&self, run: &RunId, account: &str) -> Result<(), store::Error> {
        match self.runs.find(run, account).await? {
            Some(found) => self.runs.cancel(found, "the session was deleted".to_owned()).await,
            None => Ok(()),
        }
    }

    /// Deletes a run that was stopped, but for its trail.
    async fn delete_run(&self, run: &RunId, account: &str) -> Result<(), store::Error> {
        self.keep_trail(run, account).await?;
        self.store().delete(&LogId::from(run)).await?;
        Ok(())
    }

    /// Whether whoever may reach only these clusters may see a session: it reaches no others.
    pub(crate) async fn stays_within(&self, id: &str, account: &str, only: &[String]) -> Result<bool, Error> {
        Ok(reaches_only(&self.find(id, account).await?, only))
    }

    /// The log of a session of an account.
    async fn find(&self, id: &str, account: &str) -> Result<Entry, Error> {
        self.look_up(id, account, Kind::Session).await
    }

    /// The log of something of an account. What is another account's does not exist.
    async fn look_up(&self, id: &str, account: &str, kind: Kind) -> Result<Entry, Error> {
        let unknown = || Error::Unknown(kind, id.to_owned());
        match self.store().entry(&LogId::new(id)).await {
            Ok(entry) if entry.meta.account == account && entry.meta.kind == kind => Ok(entry),
            Ok(_) | Err(store::Error::UnknownLog(_) | store::Error::BadName(_)) => Err(unknown()),
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
        let (calls, approvals) = match waiting {
            true => standing.pending(&*self.store(), &entry.log).await?,
            false => Default::default(),
        };
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
        let working = async {
            let details = self.details(log).await?;
            Actor::new(Arc::clone(self), lease, details).await?.work().await
        };
        let worked = working.await;
        if worked.is_err() {
            // Whoever looks for abandoned sessions finds it.
            give_up(&*self.store(), held, &self.closing).await;
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

/// Whether a session reaches no other clusters than these, which are all if there are none.
fn reaches_only(entry: &Entry, only: &[String]) -> bool {
    let reached = details(entry).clusters;
    only.is_empty() || !reached.is_empty() && reached.iter().all(|cluster| only.contains(cluster))
}

fn details(entry: &Entry) -> Details {
    Details::decode(entry.meta.details.as_slice()).unwrap_or_default()
}

/// The name of the event that an entry is.
fn name(entry: &record::Entry) -> &'static str {
    entry.data().map_or("", Data::name)
}
