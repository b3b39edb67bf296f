//! The events of a session, from whichever agent answers: where one is lost, another goes on.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::{Code, Status, Streaming};
use wire::{
    agent::Caller,
    session::{Cursor, Event, Filter, cursor::Place},
};

use super::Upstream;

/// Time between two looks for an agent.
const PAUSE: Duration = Duration::from_millis(250);

/// A session that is watched. Dropping it ends that.
pub(super) struct Watching {
    agent: Upstream,
    asked: Asked,
    events: Streaming<Event>,
    patience: Duration,
    lost: Option<Instant>,
}

/// What a reader wants.
pub(super) struct Asked {
    /// On whose behalf.
    pub(super) caller: Option<Caller>,
    pub(super) session: String,
    /// Behind which event.
    pub(super) cursor: Cursor,
    pub(super) filter: Filter,
    pub(super) until: Instant,
}

impl Asked {
    async fn of(&self, agent: &Upstream) -> Result<Streaming<Event>, Status> {
        let Self { caller, session, cursor, filter, until } = self;
        let time = until.saturating_duration_since(Instant::now());
        agent.watch(caller.clone(), session, Some(cursor.clone()), Some(filter.clone()), time).await
    }
}

impl Watching {
    pub(super) async fn begin(agent: Upstream, asked: Asked, patience: Duration) -> Result<Self, Status> {
        let events = asked.of(&agent).await?;
        Ok(Self { agent, asked, events, patience, lost: None })
    }

    /// The next event; `None` once no agent has it. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            match self.events.message().await {
                Ok(Some(event)) => {
                    self.lost = None;
                    self.asked.cursor = Cursor { place: Some(Place::SinceId(event.id.clone())) };
                    return Some(event);
                }
                Ok(None) => {}
                Err(status) => tracing::debug!(error = %status.message(), "a session's agent is lost"),
            }
            self.rejoin().await?;
        }
    }

    async fn rejoin(&mut self) -> Option<()> {
        let lost = *self.lost.get_or_insert_with(Instant::now);
        while lost.elapsed() < self.patience {
            sleep(PAUSE).await;
            match self.asked.of(&self.agent).await {
                Ok(events) => {
                    self.events = events;
                    return Some(());
                }
                Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => break,
                Err(_) => {}
            }
        }
        None
    }
}
