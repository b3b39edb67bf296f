//! Runs that another process left behind: taken over and driven on from their logs.

mod patience;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use domain::{
    AgentId, Event, EventKind, FailureCode, Family, Input, Limits, LogId, RunId, RunStarted, Timestamp,
};
use runtime::clock;
use store::{Batch, BlobId, Lease, State, Store};
use tokio::{
    task::JoinSet,
    time::{Instant, interval},
};

use super::{
    Progress, Runs,
    table::{Full, Most},
};
use patience::Patience;

use crate::{
    clusters::NotConnected,
    driver::{Driver, Entry, Form, Setup, stamped},
    sessions::ids::is_session,
    tools::{CodeInput, Context, Home, NoExecutor, RequestHeaders, Rules, Tools, Unusable},
};

/// How often this agent looks for runs whose agent is gone.
const PERIOD: Duration = Duration::from_secs(1);
/// How many it looks at, and how many of them it takes over at a time.
const LOOKED_AT: usize = 1000;
const AT_ONCE: usize = 64;
/// How often one that cannot be read is tried, in case another agent, of another version, can.
const TRIES: u32 = 5;
/// Events that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(512).unwrap();

/// Why a run cannot be driven on.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// It may work later.
    #[error(transparent)]
    Executor(#[from] NoExecutor),
    /// It may come back.
    #[error(transparent)]
    Cluster(#[from] NotConnected),
    #[error(transparent)]
    Full(#[from] Full),
    /// It will never work here.
    #[error("{0}")]
    Impossible(String),
}

impl Stuck {
    /// Whether nobody can go on with such a log.
    fn is_in_the_log(&self) -> bool {
        matches!(self, Self::Impossible(_) | Self::Store(store::Error::Corrupt { .. }))
    }
}

impl From<Unusable> for Stuck {
    fn from(unusable: Unusable) -> Self {
        Self::Impossible(unusable.to_string())
    }
}

/// A log that is this agent's now.
struct Left {
    lease: Lease,
    events: Vec<Arc<Event>>,
    family: Family,
    id: RunId,
    started: RunStarted,
    /// What a list shows of it.
    question: String,
    began: Timestamp,
    position: u64,
}

impl Left {
    /// How long ago it began.
    fn age(&self) -> Duration {
        let gone = clock::unix_nanos().saturating_sub(self.began.0);
        Duration::from_nanos(u64::try_from(gone).unwrap_or(0))
    }

    /// Whether it could not answer any more if it went on.
    fn is_too_late(&self) -> bool {
        let Limits { wall_time, answer_time, .. } = self.started.setup.limits;
        self.age() > wall_time.saturating_add(answer_time)
    }
}

impl Runs {
    /// Looks for runs whose agent is gone until this one drains. Sessions that nobody works on are somebody else's.
    pub(crate) fn keep_recovering(self: &Arc<Self>, session: impl Fn(LogId) + Send + Sync + 'static) {
        let runs = Arc::clone(self);
        let closing = self.closing.clone();
        self.tasks.spawn(closing.run_until_cancelled_owned(async move {
            let (mut ticks, mut patience) = (interval(PERIOD), Patience::default());
            let mut takeovers = JoinSet::new();
            loop {
                ticks.tick().await;
                // What would be taken over now would soon be left again.
                if runs.draining.is_cancelled() {
                    break;
                }
                while takeovers.try_join_next().is_some() {}
                if let Err(error) = runs.recover(&session, &mut patience, &mut takeovers).await {
                    tracing::warn!(%error, "runs of lost agents cannot be looked for");
                }
            }
            // One that has begun is brought to its end: the run goes on, or its log is free again.
            while takeovers.join_next().await.is_some() {}
        }));
    }

    async fn recover(
        self: &Arc<Self>,
        session: &(impl Fn(LogId) + Sync),
        patience: &mut Patience,
        takeovers: &mut JoinSet<()>,
    ) -> Result<(), store::Error> {
        let owner = self.heart.beats().await?;
        let due = patience.due(self.log.abandoned(LOOKED_AT).await?);
        let (sessions, runs): (Vec<_>, Vec<_>) = due.into_iter().partition(is_session);
        for log in sessions.into_iter().take(AT_ONCE) {
            patience.tried(log.clone());
            session(log);
        }
        // The store was away, and with it the news that this agent lives, where this one drives a run.
        let room = AT_ONCE.saturating_sub(takeovers.len());
        for log in runs.into_iter().filter(|log| !self.drives(log)).take(room) {
            let tries = patience.tried(log.clone());
            let Some(lease) = self.log.claim(&log, &owner).await? else { continue };
            let runs = Arc::clone(self);
            takeovers.spawn(async move {
                if let Err(error) = runs.try_to_take_over(lease, tries).await {
                    tracing::warn!(log = log.as_str(), %error, "a run cannot be left");
                }
            });
        }
        Ok(())
    }

    /// Takes a run over, or frees its log for the next try.
    async fn try_to_take_over(&self, lease: Lease, tries: u32) -> Result<(), store::Error> {
        let Err(error) = self.take_over(lease.clone(), tries >= TRIES).await else { return Ok(()) };
        let log = lease.log();
        match tries {
            1 => tracing::warn!(%log, %error, "a run cannot be taken over now"),
            _ => tracing::debug!(%log, %error, tries, "a run cannot be taken over yet"),
        }
        self.log.release(lease).await
    }

    fn drives(&self, log: &LogId) -> bool {
        self.table.get(&RunId::new(log.as_str())).is_some_and(|run| run.outcome().is_none())
    }

    async fn take_over(&self, lease: Lease, is_last_try: bool) -> Result<(), Stuck> {
        let left = match self.fold(lease.clone()).await {
            Err(stuck) if is_last_try && stuck.is_in_the_log() => {
                return Ok(self.bury(lease, &stuck).await?);
            }
            left => left?,
        };
        if left.family.main().outcome().is_some() {
            return Ok(self.put_away(left.lease, left.position, Vec::new()).await?);
        }
        tracing::info!(run = %left.id, position = left.position, "a run is taken over");
        match self.drive_on(&left).await {
            Err(Stuck::Impossible(why)) => Ok(self.give_up(left, &why).await?),
            Err(stuck) if left.is_too_late() && !matches!(stuck, Stuck::Store(_)) => {
                Ok(self.give_up(left, &stuck).await?)
            }
            driven => driven,
        }
    }

    async fn fold(&self, lease: Lease) -> Result<Left, Stuck> {
        let events = history(&*self.log, lease.log()).await?;
        let Some(EventKind::RunStarted(started)) = events.first().map(|event| &event.kind) else {
            return Err(Stuck::Impossible("its log does not begin with its start".to_owned()));
        };
        let started = started.clone();
        let family = Family::fold(started.setup.limits, events.iter().map(AsRef::as_ref));
        let (id, began) = events.first().map_or_else(
            || (RunId::new(lease.log().as_str()), Timestamp::default()),
            |first| (first.run.clone(), first.time),
        );
        let position = events.last().map_or(0, |event| event.position);
        let question = self.log.entry(lease.log()).await?.meta.title;
        Ok(Left { lease, events, family, id, started, question, began, position })
    }

    async fn give_up(&self, mut left: Left, why: &(dyn Display + Sync)) -> Result<(), store::Error> {
        let mut moves = left.family.step(&AgentId::main(), Input::Broken { text: interrupted(why) });
        let entries = moves.iter_mut().flat_map(Entry::of);
        self.put_away(left.lease, left.position, stamped(&left.id, left.position, entries)).await
    }

    /// Ends a run of which nothing is known but that it goes on.
    async fn bury(&self, lease: Lease, why: &Stuck) -> Result<(), store::Error> {
        let stored = self.log.entry(lease.log()).await?;
        let (code, message) = (FailureCode::Internal, interrupted(why));
        let end = (stored.state == State::Running).then(|| {
            tracing::error!(log = %lease.log(), error = %why, "a run cannot be read and is given up");
            Entry::main(EventKind::RunFailed { code, message })
        });
        let events = stamped(&RunId::new(lease.log().as_str()), stored.position, end);
        self.put_away(lease, stored.position, events).await
    }

    /// Ends a run with its last events. Nobody will answer what was posted to it.
    async fn put_away(&self, lease: Lease, position: u64, events: Vec<Event>) -> Result<(), store::Error> {
        let posted = self.log.posted(lease.log(), 0).await?;
        if !events.is_empty() || !posted.is_empty() {
            let taken = posted.last().map_or(0, |last| last.entry);
            self.log.append(&lease, Batch::new(position, events).taking(taken)).await?;
        }
        self.log.release(lease).await
    }

    /// The tools of the clusters that the run looks at. Those at which something goes on must be connected.
    fn tools_of(&self, left: &Left) -> Result<Tools, Stuck> {
        let RunStarted { account, setup, .. } = &left.started;
        if setup.clusters.is_empty() {
            return Ok(self.tools.of(account, &setup.cluster, &setup.labels)?);
        }
        for cluster in at_work(&left.events) {
            self.tools.of(account, cluster, &setup.labels)?;
        }
        Ok(self.tools.of_several(account, &setup.clusters, &setup.labels))
    }

    async fn drive_on(&self, left: &Left) -> Result<(), Stuck> {
        let Left { lease, events, family, id, started, question, began, position } = left;
        let model =
            self.models.get(Some(&started.model)).map_err(|error| Stuck::Impossible(error.to_string()))?;
        let form = match started.setup.response_format.as_str() {
            "" => None,
            text => serde_json::from_str(text).ok().and_then(|format| Form::read(format).ok().flatten()),
        };
        let tools = self.tools_of(left)?;
        let offer = tools.offer(started.setup.profile).await?;
        let result_tokens = self.tool_result_tokens(started.context_window);
        let (tools, offer) =
            tools.for_run(started.client_tools.clone(), offer, result_tokens, started.subagents)?;
        let (cancel, limits) = (self.closing.child_token(), started.setup.limits);
        let progress =
            Arc::new(Progress::taken_over(id.clone(), started, question.clone(), *began, cancel.clone()));
        progress.update(family.main(), *position);
        let seat = self
            .table
            .admit(&progress, Most { of_account: usize::MAX, of_key: usize::MAX, ..self.most() })?;
        let wall_time = limits.wall_time.saturating_sub(left.age());
        let mut context = Context {
            run: id.clone(),
            account: started.account.clone(),
            principal: started.principal.clone(),
            session: started.setup.session.clone(),
            profile: started.setup.profile,
            standing: started.setup.standing.iter().cloned().map(Into::into).collect(),
            // They are kept nowhere: what needs one is refused.
            headers: RequestHeaders::default(),
            follows_runbook: false,
            rules: Rules::new(started.setup.permissions.clone()),
            home: Home::of(events.iter().map(|event| &event.kind)),
            deadline: Instant::now() + wall_time + limits.answer_time,
            audience: progress.audience(),
            leaving: self.leaving.child_token(),
        };
        context.remember(events.iter().map(|event| &event.kind));
        context.rules.use_up(events.iter().map(|event| &event.kind));
        let setup = Setup {
            log: self.log(),
            lease: lease.clone(),
            tools,
            specs: Arc::clone(&offer.specs),
            summarizers: self.summarizers(&offer),
            system: started.setup.system.clone(),
            form,
            context,
            model,
            start: RunStarted { messages: Vec::new(), ..started.clone() },
            wall_time,
            cancel,
            progress: Arc::clone(&progress),
        };
        // Whoever read the run comes back, or the grace ends it.
        drop(self.read_here(Arc::clone(&progress)));
        let mut driver = Driver::taking_over(setup, family.clone(), *position);
        if let Ok(blob) = started.setup.context.as_slice().try_into() {
            driver = driver.with_input(CodeInput::Stored(self.log(), lease.log().clone(), BlobId(blob)));
        }
        self.spawn(driver, progress, seat);
        Ok(())
    }
}

/// All events of a log.
pub(super) async fn history(store: &dyn Store, log: &LogId) -> Result<Vec<Arc<Event>>, store::Error> {
    let mut events: Vec<Arc<Event>> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.position);
        let page = store.read(log, after, PAGE).await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

fn interrupted(why: &dyn Display) -> String {
    format!("The run was interrupted and cannot go on: {why}")
}

/// The clusters at which calls go on.
fn at_work(events: &[Arc<Event>]) -> BTreeSet<&str> {
    let mut calls = BTreeMap::new();
    for event in events {
        match &event.kind {
            EventKind::ToolStarted { call, cluster: Some(cluster), .. }
            | EventKind::CallApproved { call, cluster: Some(cluster), .. } => {
                calls.insert(&call.id, cluster.as_str());
            }
            EventKind::ToolFinished { call, .. } => drop(calls.remove(call)),
            EventKind::CallResolved { call, .. } => drop(calls.remove(&call.id)),
            _ => {}
        }
    }
    calls.into_values().collect()
}

#[cfg(test)]
mod tests;
