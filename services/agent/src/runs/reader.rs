//! Somebody who reads a run. When the last one has left, the run does not go on for long.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::Progress;

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
        state.visits += 1;
        self.run.counted(&state);
        let (alone, visits) = (state.readers == 0 && state.outcome.is_none(), state.visits);
        drop(state);
        if !alone || self.run.kept {
            return;
        }
        if self.grace.is_zero() {
            return self.run.cancel(LEFT);
        }
        tokio::spawn(wait(Arc::clone(&self.run), self.grace, visits));
    }
}

/// Ends a run that nobody has visited for the grace. Ends by itself.
async fn wait(run: Arc<Progress>, grace: Duration, visits: u64) {
    sleep(grace).await;
    if run.state().visits == visits {
        run.cancel(LEFT);
    }
}

impl Progress {
    /// Somebody reads the run through another agent: the grace begins anew.
    pub(super) fn is_read_elsewhere(self: &Arc<Self>) {
        let mut state = self.lock();
        state.visits += 1;
        state.elsewhere = Some(Instant::now() + ELSEWHERE);
        self.counted(&state);
        let (alone, visits) = (state.readers == 0, state.visits);
        drop(state);
        if alone && !self.kept {
            tokio::spawn(wait(Arc::clone(self), ELSEWHERE, visits));
        }
    }
}
