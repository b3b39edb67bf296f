//! Events from whichever agent has them: where one is lost, another goes on.

use std::time::Duration;

use tonic::{Code, Status, Streaming};
use wire::agent::{Caller, Event};

use crate::{
    patience::Patience,
    upstream::{Started, Upstream},
};

/// What can be followed.
pub(crate) trait Followed {
    type Event;

    /// The events behind those that were seen, from any agent.
    fn open(&self) -> impl Future<Output = Result<Streaming<Self::Event>, Status>> + Send;

    /// Goes on behind this event.
    fn seen(&mut self, event: &Self::Event);
}

/// What is followed. Dropping it tells the agent that nobody listens.
#[derive(Debug)]
pub(crate) struct Following<F: Followed> {
    followed: F,
    /// Nothing if the agent was lost before it sent any.
    events: Option<Streaming<F::Event>>,
    patience: Patience,
}

impl<F: Followed> Following<F> {
    /// Follows what an agent has.
    pub(crate) async fn begin(followed: F, patience: Duration) -> Result<Self, Status> {
        let events = Some(followed.open().await?);
        Ok(Self { followed, events, patience: Patience::new(patience) })
    }

    /// Follows what some agent will have, whatever has become of the one that said so.
    pub(crate) async fn begin_patiently(followed: F, patience: Duration) -> Result<Self, Status> {
        let events = match followed.open().await {
            Err(status) if is_final(&status) => return Err(status),
            opened => opened.ok(),
        };
        Ok(Self { followed, events, patience: Patience::new(patience) })
    }

    /// The next event; an error once no agent has it, with what the last one said. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<F::Event, Option<Status>> {
        loop {
            let why = match self.events.as_mut() {
                Some(events) => match events.message().await {
                    Ok(Some(event)) => {
                        self.patience.heard();
                        self.followed.seen(&event);
                        return Ok(event);
                    }
                    Ok(None) => None,
                    Err(status) => Some(status),
                },
                None => None,
            };
            self.rejoin().await.ok_or(why)?;
        }
    }

    async fn rejoin(&mut self) -> Option<()> {
        let Self { followed, patience, .. } = self;
        self.events = Some(patience.find(|| followed.open(), is_final).await?);
        Some(())
    }
}

/// Whether every agent would say the same.
fn is_final(status: &Status) -> bool {
    matches!(status.code(), Code::NotFound | Code::InvalidArgument)
}

/// The events of a run.
#[derive(Debug)]
pub(crate) struct RunEvents {
    agent: Upstream,
    /// On whose behalf.
    caller: Caller,
    run: String,
    /// The last position that came.
    position: u64,
}

impl Followed for RunEvents {
    type Event = Event;

    async fn open(&self) -> Result<Streaming<Event>, Status> {
        self.agent.rejoin(&self.caller, self.run.clone(), self.position).await
    }

    fn seen(&mut self, event: &Event) {
        self.position = event.position;
    }
}

impl Following<RunEvents> {
    /// Follows a run that an agent has begun to tell of.
    pub(crate) fn run(agent: Upstream, caller: Caller, started: Started, patience: Duration) -> Self {
        let Started { run_id: run, events } = started;
        let followed = RunEvents { agent, caller, run, position: 0 };
        Self { followed, events: Some(events), patience: Patience::new(patience) }
    }

    pub(crate) fn id(&self) -> &str {
        &self.followed.run
    }

    /// The last position that came.
    pub(crate) fn position(&self) -> u64 {
        self.followed.position
    }
}
