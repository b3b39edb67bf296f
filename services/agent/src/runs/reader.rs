//! Somebody who reads a run. When the last one has left, the run does not go on for long.

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{Progress, progress::State};

const LEFT: &str = "the client has left";
/// How long a run goes on after a sign of life of a reader elsewhere: longer than it takes to the next.
const ELSEWHERE: Duration = Duration::from_secs(60);

/// A reader of a run; it leaves when it is dropped.
pub(crate) struct Reader {
    run: Arc<Progress>,
    grace: Duration,
}

impl Reader {
    pub(super) fn new(run: Arc<Progress>, grace: Duration) -> Self {
        let mut state = run.lock();
        state.readers += 1;
        state.visits += 1;
        run.counted(&state);
        drop(state);
        Self { run, grace }
    }

    /// What is read.
    pub(crate) fn run(&self) -> &Arc<Progress> {
        &self.run
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.run.lock();
        state.readers -= 1;
        self.run.is_left(state, Instant::now() + self.grace);
    }
}

/// Ends a run that nobody has visited until then. Ends by itself.
async fn wait(run: Arc<Progress>, until: Instant, visits: u64) {
    sleep_until(until).await;
    if run.state().visits == visits {
        run.cancel(LEFT);
    }
}

impl Progress {
    /// Somebody reads the run through another agent.
    pub(super) fn is_read_elsewhere(self: &Arc<Self>) {
        let mut state = self.lock();
        let until = Instant::now() + ELSEWHERE;
        state.elsewhere = Some(until);
        self.is_left(state, until);
    }

    /// Without readers here the run goes on until then, or for as long as something earlier said.
    fn is_left(self: &Arc<Self>, mut state: MutexGuard<'_, State>, until: Instant) {
        state.visits += 1;
        let until = state.goes_on.map_or(until, |before| before.max(until));
        state.goes_on = Some(until);
        self.counted(&state);
        let (alone, visits) = (state.readers == 0 && state.outcome.is_none(), state.visits);
        drop(state);
        match alone && !self.kept {
            true if until <= Instant::now() => self.cancel(LEFT),
            true => drop(tokio::spawn(wait(Arc::clone(self), until, visits))),
            false => {}
        }
    }
}
