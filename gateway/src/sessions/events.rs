//! The events of a session that are there: the polling twin of the stream.

use axum::{
    Json,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use wire::session::{
    Cursor, Event, Filter, ListEventsRequest, ListEventsResponse, cursor::Place, event::Data,
};

use super::{Sessions, encode, ids_of, object::name, problem::Problem, query::Query};

/// How many events there are in all, deltas left out.
pub(crate) const TOTAL: HeaderName = HeaderName::from_static("x-total-count");
/// Events around one, unless the client says how many; and the most that it may say.
const WINDOW: u32 = 50;
const WIDEST: u32 = 500;

/// `GET /v1/sessions/{id}/events`
pub(super) async fn list(sessions: Sessions, request: Request) -> Result<Response, Problem> {
    let (session_id, query) = (ids_of(&request)?, Query::parse(request.uri().query()));
    let listed = match query.number("around")? {
        Some(sequence) => sessions.around(&session_id, &query, sequence).await?,
        None => {
            let cursor = query.cursor(request.headers())?;
            let before = query.number("before_sequence")?.unwrap_or_default();
            sessions.listed(&session_id, &query, (cursor, before), query.limit()?).await?
        }
    };
    let mut events: Vec<_> = listed.events.into_iter().map(encode::event).collect();
    if query.flag("order_desc")? == Some(true) {
        events.reverse();
    }
    let total = [(TOTAL, HeaderValue::from(listed.total))];
    Ok((total, Json(json!({ "data": events, "has_more": listed.has_more }))).into_response())
}

impl Sessions {
    async fn listed(
        &self,
        session_id: &str,
        query: &Query,
        (cursor, before_sequence): (Option<Cursor>, u64),
        limit: u32,
    ) -> Result<ListEventsResponse, Problem> {
        let (caller, session_id) = (self.caller(), session_id.to_owned());
        let (filter, search) = (Some(query.filter()?), Some(query.search()?));
        let asked = ListEventsRequest { caller, session_id, cursor, filter, limit, before_sequence, search };
        Ok(self.upstream().events(asked).await?)
    }

    /// The events around one: half of them before it.
    async fn around(
        &self,
        session_id: &str,
        query: &Query,
        sequence: u64,
    ) -> Result<ListEventsResponse, Problem> {
        let window = match query.number("window")? {
            None => WINDOW,
            Some(window) if (1..=u64::from(WIDEST)).contains(&window) => {
                u32::try_from(window).unwrap_or(WIDEST)
            }
            Some(_) => return Err(Problem::bad(format!("window must be between 1 and {WIDEST}"))),
        };
        let from = Cursor { place: Some(Place::AfterSequence(sequence.saturating_sub(1))) };
        let mut after = self.listed(session_id, query, (Some(from), 0), window.div_ceil(2)).await?;
        if window > 1 && sequence > 1 {
            let mut before = self.listed(session_id, query, (None, sequence), window / 2).await?;
            before.events.append(&mut after.events);
            after.events = before.events;
        }
        Ok(after)
    }
}

/// What a session has had so far.
#[derive(Default)]
struct Summary {
    total: u64,
    by_type: Map<String, Value>,
    first: Option<prost_types::Timestamp>,
    last: Option<prost_types::Timestamp>,
    turns: u64,
    errors: u64,
}

impl Summary {
    fn add(&mut self, event: &Event) {
        self.total += 1;
        let count = self.by_type.entry(name(event)).or_insert(Value::from(0));
        *count = Value::from(count.as_u64().unwrap_or_default() + 1);
        self.first = self.first.or(event.time);
        self.last = event.time.or(self.last);
        match &event.data {
            Some(Data::TurnStarted(_)) => self.turns += 1,
            Some(Data::TurnFailed(_)) => self.errors += 1,
            _ => {}
        }
    }
}

/// `GET /v1/sessions/{id}/events/summary`
pub(super) async fn summary(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let session_id = ids_of(&request)?;
    // Neither deltas nor prompts are needed to count.
    let exclude = ["output.message.delta", "reason.thinking.delta", "tool.output.delta"];
    let exclude = exclude.map(str::to_owned).to_vec();
    let filter = Filter { exclude, no_accumulated: true, no_prompts: true, ..Filter::default() };
    let (mut summary, mut after) = (Summary::default(), 0);
    loop {
        let listed = sessions
            .upstream()
            .events(ListEventsRequest {
                caller: sessions.caller(),
                session_id: session_id.clone(),
                cursor: Some(Cursor { place: Some(Place::AfterSequence(after)) }),
                filter: Some(filter.clone()),
                limit: 200,
                before_sequence: 0,
                search: None,
            })
            .await?;
        listed.events.iter().for_each(|event| summary.add(event));
        match listed.events.last() {
            Some(last) if listed.has_more => after = last.sequence,
            Some(_) | None => break,
        }
    }
    let time = |time: Option<prost_types::Timestamp>| time.map(|time| time.to_string());
    Ok(Json(json!({
        "total": summary.total, "by_type": summary.by_type, "first_ts": time(summary.first),
        "last_ts": time(summary.last), "turn_count": summary.turns, "error_count": summary.errors,
    })))
}
