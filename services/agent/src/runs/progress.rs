//! What others see of a run while its driver drives it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Outcome, Run, RunId, RunStarted, Timestamp, Totals};
use runtime::clock;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Audience, Question};

/// Characters of the question that a list shows.
const EXCERPT: usize = 200;

/// A run, seen from outside its driver.
pub(crate) struct Progress {
    pub id: RunId,
    pub account: String,
    pub principal: String,
    pub question: String,
    pub model: String,
    pub started_at: Timestamp,
    /// Whether it goes on without readers.
    pub kept: bool,
    cancel: CancellationToken,
    left: CancellationToken,
    state: Mutex<State>,
    audience: watch::Sender<Audience>,
}

/// What changes about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub outcome: Option<Outcome>,
    pub ended_at: Option<Timestamp>,
    pub position: u64,
    pub steps: u32,
    pub tool_calls: u32,
    pub totals: Totals,
    pub readers: u32,
    /// Goes up with every reader that comes or goes: tells whether one came back in time.
    pub visits: u64,
    /// Until when somebody reads it through another agent.
    pub elsewhere: Option<Instant>,
    /// Until when it goes on without readers here.
    pub goes_on: Option<Instant>,
    cancel_reason: Option<String>,
    /// The driver has ended, with or without an outcome.
    over: bool,
}

impl Progress {
    pub(super) fn new(id: RunId, question: &Question, model: &str, cancel: CancellationToken) -> Self {
        Self {
            id,
            account: question.account.clone(),
            principal: question.principal.clone(),
            question: question.text.chars().take(EXCERPT).collect(),
            model: model.to_owned(),
            started_at: Timestamp(clock::unix_nanos()),
            kept: !question.keeper.is_empty(),
            cancel,
            left: CancellationToken::new(),
            state: Mutex::new(State { position: 1, ..State::default() }),
            audience: audience(!question.keeper.is_empty()),
        }
    }

    /// A run that another process began.
    pub(super) fn taken_over(
        id: RunId,
        started: &RunStarted,
        question: String,
        began: Timestamp,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            id,
            account: started.account.clone(),
            principal: started.principal.clone(),
            question,
            model: started.model.clone(),
            started_at: began,
            kept: !started.setup.keeper.is_empty(),
            cancel,
            left: CancellationToken::new(),
            state: Mutex::default(),
            audience: audience(!started.setup.keeper.is_empty()),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.lock().outcome
    }

    /// The driver published up to `position`.
    pub(crate) fn update(&self, run: &Run, position: u64) {
        let mut state = self.lock();
        state.position = position;
        state.steps = run.steps();
        state.tool_calls = run.tool_calls();
        state.totals = run.totals_of_all();
    }

    /// The driver has ended.
    pub(crate) fn ended(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.outcome = Some(outcome);
        state.ended_at = Some(Timestamp(clock::unix_nanos()));
        state.over = true;
    }

    /// Who follows it, now and later.
    pub(super) fn audience(&self) -> watch::Receiver<Audience> {
        self.audience.subscribe()
    }

    /// Readers have come or gone.
    pub(super) fn counted(&self, state: &State) {
        let audience = match state.elsewhere {
            _ if self.kept || state.readers > 0 => Audience::Here,
            Some(until) => Audience::Elsewhere(until),
            None => Audience::Gone,
        };
        self.audience.send_replace(audience);
    }

    /// The run goes on, but not here.
    pub(super) fn leave(&self) {
        self.left.cancel();
    }

    /// Cancelled once the run does not go on here any more.
    pub(super) fn left(&self) -> CancellationToken {
        self.left.clone()
    }

    /// Asks the driver to stop. The first reason counts.
    pub(crate) fn cancel(&self, reason: impl Into<String>) {
        let mut state = self.lock();
        if !state.over {
            state.cancel_reason.get_or_insert_with(|| reason.into());
            self.cancel.cancel();
        }
    }

    /// Why the driver was asked to stop.
    pub(crate) fn cancel_reason(&self) -> String {
        self.lock().cancel_reason.clone().unwrap_or_else(|| "the agent is shutting down".to_owned())
    }
}

fn audience(kept: bool) -> watch::Sender<Audience> {
    watch::Sender::new(if kept { Audience::Here } else { Audience::Gone })
}
