//! One run, from the agent's stream to the client: event by event, never more than one held.

use std::{fmt, time::Duration};

use axum::{body::Bytes, response::Response};
use metrics::{gauge, histogram};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{Instrument as _, Span};

use crate::{
    following::{Following, RunEvents},
    problem::Problem,
    sse::{self, Frame},
    telemetry,
};

/// What a dialect makes of a run. Pure: it neither waits nor looks at a clock.
pub(crate) trait Projection: Send + 'static {
    /// The frame that an event becomes, if this dialect shows it.
    fn frame(&mut self, event: domain::Event) -> Option<Frame>;

    /// What a stream begins with that starts at the beginning of a run.
    fn opening(&self, _run: &str) -> Option<Frame> {
        None
    }

    /// A second frame for the event of the last one: it comes right behind.
    fn following(&mut self) -> Option<Frame> {
        None
    }

    /// The last frame of a stream whose run cannot be followed any more.
    fn broken(&self, why: &Interruption) -> Frame;
}

/// Why a run cannot be followed to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Interruption {
    #[error("The answer took too long")]
    TooSlow,
    #[error(
        "The server is shutting down. To read on where this ends, send the request again with the header \
         `Last-Event-ID: {0}`"
    )]
    Stopping(String),
    #[error("The agent was lost")]
    Lost(#[source] Status),
    #[error("The agent sent an event that cannot be read")]
    Malformed(#[from] wire::Malformed),
    #[error("The agent ended the run without an end")]
    CutShort,
}

impl From<Interruption> for Problem {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::TooSlow => Self::too_slow(),
            Interruption::Stopping(_) => Self::stopping(),
            Interruption::Lost(status) => status.into(),
            Interruption::Malformed(_) | Interruption::CutShort => {
                Self::new(http::StatusCode::INTERNAL_SERVER_ERROR, interruption.to_string())
            }
        }
    }
}

/// How a client has come to an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Came {
    /// It has just asked.
    First,
    /// It has just asked, with a key by which it can ask again.
    WithKey,
    /// It has seen the events up to a position.
    After(u64),
}

/// The answer to a question while it is given. Dropping it tells the agent that nobody listens.
#[derive(Debug)]
pub(crate) struct Answer {
    run: Following<RunEvents>,
    /// The last position that the client has seen.
    after: u64,
    /// Whether it comes back for what it has not seen.
    comes_back: bool,
    deadline: Instant,
    ending: CancellationToken,
    over: bool,
    _permit: OwnedSemaphorePermit,
}

impl Answer {
    /// The answer of a run, for a client that has come to it so.
    pub(crate) fn new(
        run: Following<RunEvents>,
        came: Came,
        deadline: Instant,
        ending: CancellationToken,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let (after, comes_back) = match came {
            Came::First => (0, false),
            Came::WithKey => (0, true),
            Came::After(position) => (position, true),
        };
        Self { run, after, comes_back, deadline, ending, over: false, _permit: permit }
    }

    pub(crate) fn run_id(&self) -> &str {
        self.run.id()
    }

    /// What has come of it.
    fn place(&self) -> String {
        FrameId { run: self.run.id(), position: self.run.position() }.to_string()
    }

    /// The next event; `None` after the terminal one. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<domain::Event>, Interruption> {
        if self.over {
            return Ok(None);
        }
        let event = tokio::select! {
            event = self.run.next() => event.map_err(|why| why.map_or(Interruption::CutShort, Interruption::Lost))?,
            () = tokio::time::sleep_until(self.deadline) => return Err(Interruption::TooSlow),
            () = self.ending.cancelled() => return Err(Interruption::Stopping(self.place())),
        };
        let event = domain::Event::try_from(event)?;
        self.over = event.ends_run();
        Ok(Some(event))
    }

    /// The answer as a stream of server-sent events.
    pub(crate) fn stream(self, projection: impl Projection, heartbeat: Duration) -> Response {
        let span = Span::current();
        let opened = self.after > 0;
        let frames = Frames { answer: self, projection, heartbeat, opened, _open: Open::new() };
        sse::response(futures_util::stream::unfold(Some(frames), move |frames| {
            async move {
                let mut frames = frames?;
                let (bytes, more) = frames.next().await?;
                Some((bytes, more.then_some(frames)))
            }
            .instrument(span.clone())
        }))
    }
}

/// An answer on its way to a client.
struct Frames<P> {
    answer: Answer,
    projection: P,
    heartbeat: Duration,
    /// Whether it has begun.
    opened: bool,
    _open: Open,
}

impl<P: Projection> Frames<P> {
    /// The next bytes, and whether more can follow.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        match tokio::time::timeout(self.heartbeat, self.frame()).await {
            Err(_) => Some((sse::HEARTBEAT, true)),
            Ok(Ok(bytes)) => bytes.map(|bytes| (bytes, true)),
            // It finds the run at another gateway, or here again.
            Ok(Err(Interruption::Stopping(_))) if self.answer.comes_back => None,
            Ok(Err(interruption)) => {
                tracing::warn!(run = self.answer.run_id(), error = ?interruption, "an answer broke off");
                Some((self.projection.broken(&interruption).encode(None), false))
            }
        }
    }

    /// The next frame, events that this dialect does not show skipped.
    async fn frame(&mut self) -> Result<Option<Bytes>, Interruption> {
        if !std::mem::replace(&mut self.opened, true)
            && let Some(opening) = self.projection.opening(self.answer.run_id())
        {
            return Ok(Some(opening.encode(Some(&FrameId { run: self.answer.run_id(), position: 0 }))));
        }
        while let Some(event) = self.answer.next().await? {
            let position = event.position;
            // What the client has seen still tells the projection what later events need.
            let (frame, following) = (self.projection.frame(event), self.projection.following());
            let Some(frame) = frame.filter(|_| position > self.answer.after) else { continue };
            let id = FrameId { run: self.answer.run_id(), position };
            // Only the last frame of an event tells that it was seen.
            return Ok(Some(match following {
                Some(last) => [frame.encode(None), last.encode(Some(&id))].concat().into(),
                None => frame.encode(Some(&id)),
            }));
        }
        Ok(None)
    }
}

/// Where a reader can go on: opaque to clients.
struct FrameId<'a> {
    run: &'a str,
    position: u64,
}

impl fmt::Display for FrameId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.run, self.position)
    }
}

/// Counts a stream while it is open.
struct Open(Instant);

impl Open {
    fn new() -> Self {
        gauge!(telemetry::HTTP_STREAMS).increment(1);
        Self(Instant::now())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        gauge!(telemetry::HTTP_STREAMS).decrement(1);
        histogram!(telemetry::HTTP_STREAM_DURATION).record(self.0.elapsed());
    }
}
