//! Somebody who reads a run. When the last one has left, the run does not go on for long.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::Progress;

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
        let (alone, visits) = (state.readers == 0 && state.outcome.is_none(), state.visits);
        drop(state);
        if !alone {
            return;
        }
        let reason = "the client has left";
        if self.grace.is_zero() {
            return self.run.cancel(reason);
        }
        let (run, grace) = (Arc::clone(&self.run), self.grace);
        // Ends by itself after the grace.
        tokio::spawn(async move {
            sleep(grace).await;
            if run.state().visits == visits {
                run.cancel(reason);
            }
        });
    }
}
