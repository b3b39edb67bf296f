//! A message whose answer is waited for.

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use wire::session::{Cursor, Event, Filter, PostMessageResponse, cursor::Place, event::Data};

use super::{
    Sessions,
    object::Object,
    objects, parts,
    problem::Problem,
    watching::{SessionEvents, Watching},
};

/// How long an answer is waited for, unless the client says how long; and the longest time that it may say.
const USUAL: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

pub(super) fn time(millis: Option<u64>) -> Duration {
    millis.map_or(USUAL, Duration::from_millis).min(LONGEST)
}

/// What has come of a turn.
#[derive(Default)]
struct Outcome {
    messages: Vec<Value>,
    error: Option<String>,
    over: bool,
}

impl Outcome {
    fn see(&mut self, event: Event, turn: &str) {
        let belongs = event.context.is_some_and(|context| context.turn_id == turn);
        match event.data {
            Some(Data::OutputMessageCompleted(completed)) if belongs => {
                self.messages.extend(completed.message.map(|message| parts::message(message).into()));
            }
            Some(Data::TurnFailed(failed)) if belongs => self.error = Some(failed.error),
            Some(Data::TurnCancelled(cancelled)) if belongs => {
                self.error = Some(cancelled.reason.unwrap_or_else(|| "cancelled".to_owned()));
            }
            Some(Data::TurnSealed(sealed)) if belongs => {
                self.error = Some(sealed.detail.unwrap_or(sealed.reason));
            }
            Some(Data::SessionIdled(_)) if belongs => self.over = true,
            _ => {}
        }
    }

    fn answer(self, message: Value) -> Response {
        let last = self.messages.last().cloned();
        let status = if self.error.is_some() { "failed" } else { "completed" };
        let body = Object::default()
            .with("status", status)
            .with("message", last)
            .with("messages", self.messages)
            .with("input", message)
            .may("error", self.error);
        Json(Value::from(body)).into_response()
    }
}

impl Sessions {
    /// Waits until the turn of a message has ended; 202 if it takes longer.
    pub(super) async fn wait(
        &self,
        session: &str,
        posted: PostMessageResponse,
        time: Duration,
    ) -> Result<Response, Problem> {
        let until = Instant::now() + time;
        let cursor = Cursor { place: Some(Place::AfterSequence(posted.sequence)) };
        let names =
            ["output.message.completed", "turn.failed", "turn.cancelled", "turn.sealed", "session.idled"];
        let types = names.map(str::to_owned).to_vec();
        let filter = Filter { types, ..Filter::default() };
        let (agent, caller, session_id) = (self.upstream().clone(), self.caller(), session.to_owned());
        let wanted = SessionEvents { agent, caller, session: session_id, cursor, filter, until };
        let mut events = Watching::begin_patiently(wanted, self.shared.config.agent_patience).await?;
        let (turn, mut outcome) = (posted.turn_id.clone(), Outcome::default());
        let message = objects::posted(session, posted);
        while !outcome.over {
            match timeout_at(until, events.next()).await {
                Ok(Ok(event)) => outcome.see(event, &turn),
                Ok(Err(_)) | Err(_) => break,
            }
        }
        if outcome.over {
            return Ok(outcome.answer(message));
        }
        Ok((StatusCode::ACCEPTED, Json(json!({ "status": "running", "message": message }))).into_response())
    }
}
