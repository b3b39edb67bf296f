//! The events of a run, from whichever agent has them: where one is lost, another goes on.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::{Code, Streaming};
use wire::agent::{Caller, Event};

use crate::{
    answer::Interruption,
    upstream::{Started, Upstream},
};

/// Time between two looks for an agent.
const PAUSE: Duration = Duration::from_millis(250);

/// A run that is followed. Dropping it tells the agent that nobody listens.
#[derive(Debug)]
pub(crate) struct Following {
    agent: Upstream,
    /// On whose behalf.
    caller: Caller,
    run: String,
    events: Streaming<Event>,
    /// The last position that came.
    position: u64,
    patience: Duration,
    lost: Option<Instant>,
}

impl Following {
    pub(crate) fn new(agent: Upstream, caller: Caller, started: Started, patience: Duration) -> Self {
        let Started { run_id, events } = started;
        Self { agent, caller, run: run_id, events, position: 0, patience, lost: None }
    }

    pub(crate) fn id(&self) -> &str {
        &self.run
    }

    /// The last position that came.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next event. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Event, Interruption> {
        loop {
            let why = match self.events.message().await {
                Ok(Some(event)) => {
                    self.lost = None;
                    self.position = event.position;
                    return Ok(event);
                }
                Ok(None) => Interruption::CutShort,
                Err(status) => status.into(),
            };
            self.rejoin(why).await?;
        }
    }

    async fn rejoin(&mut self, why: Interruption) -> Result<(), Interruption> {
        let lost = *self.lost.get_or_insert_with(Instant::now);
        while lost.elapsed() < self.patience {
            sleep(PAUSE).await;
            match self.agent.rejoin(&self.caller, self.run.clone(), self.position).await {
                Ok(events) => {
                    self.events = events;
                    return Ok(());
                }
                Err(status) if status.code() == Code::NotFound => break,
                Err(_) => {}
            }
        }
        Err(why)
    }
}
