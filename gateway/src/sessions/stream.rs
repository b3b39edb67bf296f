//! The event stream of a session: begun, kept alive, and ended now and then so that connections do not grow old.

use std::time::Duration;

use axum::{body::Bytes, response::Response};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use wire::session::Event;

use super::{encode, object::name, seats::Seat, watching::Watching};
use crate::sse;

/// Milliseconds after which a reader comes back: while something happens, and while nothing does.
const BUSY: u64 = 100;
const IDLE: u64 = 500;

/// How long one stream lasts: not all of them end together.
pub(super) fn cycle(usual: Duration) -> Duration {
    usual.mul_f64(0.8 + 0.4 * fastrand::f64())
}

/// A stream to one reader.
pub(super) struct Feed {
    pub events: Watching,
    pub until: Instant,
    pub heartbeat: Duration,
    pub stopping: CancellationToken,
    pub seat: Seat,
}

/// What comes next.
enum Next {
    Event(Box<Event>),
    Silence,
    /// The stream ends, and says why.
    End(&'static str),
    /// The stream breaks off.
    Lost,
}

impl Feed {
    /// The stream as an answer.
    pub(super) fn answer(self) -> Response {
        let frames = futures_util::stream::unfold(Some((self, false)), |feed| async move {
            let (mut feed, connected) = feed?;
            if !connected {
                let hello = frame("connected", &json!({ "status": "connected" }).to_string(), BUSY, None);
                return Some((hello, Some((feed, true))));
            }
            match feed.next().await {
                Next::Event(event) => {
                    let (kind, id) = (name(&event), event.id.clone());
                    let bytes = frame(kind, &encode::event(*event).to_string(), BUSY, Some(&id));
                    Some((bytes, Some((feed, true))))
                }
                Next::Silence => {
                    let hint = format!(": heartbeat\nretry: {IDLE}\n");
                    Some((hint.into(), Some((feed, true))))
                }
                Next::End(reason) => {
                    let data = json!({ "reason": reason, "retry_ms": BUSY }).to_string();
                    Some((frame("disconnecting", &data, BUSY, None), None))
                }
                Next::Lost => None,
            }
        });
        sse::response(frames)
    }

    async fn next(&mut self) -> Next {
        let _seated = &self.seat;
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => Next::End("shutdown"),
            () = sleep_until(self.until) => Next::End("connection_cycle"),
            event = timeout(self.heartbeat, self.events.next()) => match event {
                Ok(Ok(event)) => Next::Event(Box::new(event)),
                Ok(Err(_)) => Next::Lost,
                Err(_) => Next::Silence,
            },
        }
    }
}

fn frame(event: &str, data: &str, retry: u64, id: Option<&str>) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {event}\ndata: {data}\nretry: {retry}\n{id}\n").into()
}
