//! The events of a session that a reader wants.

use tokio::time::Instant;
use tonic::{Status, Streaming};
use wire::{
    agent::Caller,
    session::{Cursor, Event, Filter, cursor::Place},
};

use super::Upstream;
use crate::following::{Followed, Following};

/// A session that is watched.
pub(super) type Watching = Following<SessionEvents>;

/// What a reader wants.
#[derive(Debug)]
pub(super) struct SessionEvents {
    pub(super) agent: Upstream,
    /// On whose behalf.
    pub(super) caller: Option<Caller>,
    pub(super) session: String,
    /// Behind which event.
    pub(super) cursor: Cursor,
    pub(super) filter: Filter,
    pub(super) until: Instant,
}

impl Followed for SessionEvents {
    type Event = Event;

    async fn open(&self) -> Result<Streaming<Event>, Status> {
        let Self { agent, caller, session, cursor, filter, until } = self;
        let time = until.saturating_duration_since(Instant::now());
        agent.watch(caller.clone(), session, Some(cursor.clone()), Some(filter.clone()), time).await
    }

    fn seen(&mut self, event: &Event) {
        self.cursor = Cursor { place: Some(Place::SinceId(event.id.clone())) };
    }
}
