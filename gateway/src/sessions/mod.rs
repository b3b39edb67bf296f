//! The session dialect: conversations that last, over JSON and server-sent events.
//!
//! * this file: the routes
//! * `request`, `query`: what is asked
//! * `agents`, `images`, `capabilities`: what there is beside sessions
//! * `objects`, `encode`, `parts`, `object`: what is answered, as JSON
//! * `stream`, `seats`: the event stream, and how many of them there may be; `events`: its polling twin
//! * `approvals`: decisions about tool calls
//! * `waiting`: a message whose answer is waited for
//! * `upstream`, `watching`: the agent, and what a reader follows there
//! * `problem`, `ids`: errors, ids

mod agents;
mod approvals;
mod capabilities;
mod encode;
mod events;
mod ids;
mod images;
mod object;
mod objects;
mod parts;
mod problem;
mod query;
mod request;
mod seats;
mod stream;
mod upstream;
mod waiting;
mod watching;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{FromRequestParts, Request},
    response::{IntoResponse as _, Response},
    routing::{MethodRouter, get, post},
};
use http::{HeaderValue, StatusCode, header, request::Parts};
use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::{Code, Status};
use wire::{
    agent::Caller,
    session::{CreateSessionRequest, Cursor, PostMessageRequest, SessionSettings, cursor::Place},
};

use crate::{
    asker::Asker,
    auth::unknown,
    body,
    resume::{LONGEST_KEY, idempotency_key},
    state::Shared,
};
pub(crate) use events::TOTAL;
use object::Object;
use objects::NAME;
use problem::Problem;
use query::Query;
use request::{MessageBody, ResultsBody, SessionBody};
pub(crate) use seats::Seats;
use stream::Feed;
pub(crate) use upstream::Sessions as Upstream;
use watching::{SessionEvents, Watching};

/// How often a change is tried while others come first.
const CHANGES: u32 = 100;

/// Both places where the protocol's clients look for it.
const PREFIXES: [&str; 2] = ["/api/v1", "/v1"];

/// Whether a path is one of this dialect, so that errors about it are in its words.
pub(crate) fn speaks(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')))
}

/// An error in this dialect's words.
pub(crate) fn problem(problem: crate::problem::Problem) -> Response {
    Problem::from(problem).into_response()
}

pub(crate) fn routes() -> Router<Arc<Shared>> {
    let routes: [(&str, MethodRouter<Arc<Shared>>); 18] = [
        ("/sessions", get(list).post(create)),
        ("/sessions/{id}", get(inspect).patch(update).delete(delete)),
        ("/sessions/{id}/messages", get(messages).post(say)),
        ("/sessions/{id}/events", get(events::list)),
        ("/sessions/{id}/events/summary", get(events::summary)),
        ("/sessions/{id}/sse", get(watch)),
        ("/sessions/{id}/cancel", post(cancel)),
        ("/sessions/{id}/tool-results", post(tool_results)),
        ("/sessions/{id}/tool-approvals", post(approvals::decide)),
        ("/harnesses", get(async || data(vec![objects::harness()]))),
        ("/harnesses/{id}", get(harness)),
        ("/agents", get(agents::list).post(agents::create)),
        ("/agents/{id}", get(agents::inspect).patch(agents::update).delete(agents::delete)),
        ("/images", post(images::create)),
        ("/images/{id}", get(images::fetch)),
        ("/models", get(models)),
        ("/models/{id}", get(model)),
        ("/event-types", get(async || data(wire::SESSION_EVENTS.map(Value::from).to_vec()))),
    ];
    let mut router = Router::new();
    for prefix in PREFIXES {
        for (path, methods) in &routes {
            router = router.route(&format!("{prefix}{path}"), methods.clone());
        }
    }
    router
}

/// What every handler needs: what is shared, and on whose behalf.
pub(super) struct Sessions {
    shared: Arc<Shared>,
    asker: Asker,
}

impl FromRequestParts<Arc<Shared>> for Sessions {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let asker = parts.extensions.get().cloned().ok_or_else(unknown)?;
        Ok(Self { shared: Arc::clone(shared), asker })
    }
}

impl Sessions {
    fn upstream(&self) -> &Upstream {
        &self.shared.sessions
    }

    fn caller(&self) -> Option<Caller> {
        Some(self.asker.caller.clone())
    }

    /// Behind all events that a session has.
    async fn present(&self, id: &str) -> Result<Cursor, Problem> {
        let session = self.upstream().get(self.caller(), id).await?;
        Ok(Cursor { place: Some(Place::AfterSequence(session.last_sequence)) })
    }

    /// The name of the model that a client names, or gives the id of.
    async fn model(&self, asked: Option<&str>) -> Result<Option<String>, Problem> {
        let Some(asked) = asked.filter(|asked| !asked.is_empty()) else { return Ok(None) };
        let names = self.shared.upstream.models(&self.asker.caller).await?;
        let known = names.iter().find(|name| *name == asked || ids::model(name) == asked);
        match known {
            Some(name) => Ok(Some(name.clone())),
            None => Err(Problem::bad(format!("unknown model '{asked}'; known models: {}", names.join(", ")))),
        }
    }
}

fn data(items: Vec<Value>) -> Json<Value> {
    Json(Object::default().with("data", items).into())
}

/// The session that a path names.
fn ids_of(request: &Request) -> Result<String, Problem> {
    let mut parts = request.uri().path().split('/').skip_while(|part| *part != "sessions").skip(1);
    let id = parts.next().unwrap_or_default();
    if ids::is("session_", id) {
        Ok(id.to_owned())
    } else {
        Err(Problem::bad("Invalid session ID: it is `session_` and 32 lower-case hex digits"))
    }
}

/// The last part of a path.
fn last(request: &Request) -> String {
    request.uri().path().rsplit('/').next().unwrap_or_default().to_owned()
}

/// `POST /v1/sessions`
async fn create(sessions: Sessions, request: Request) -> Result<Response, Problem> {
    let (path, key) = (request.uri().path().to_owned(), idempotency_key(request.headers())?);
    let body = body::read_json(request, &sessions.shared).await?;
    let asked: SessionBody = request::read(&body)?;
    let agent_id = sessions.agent_id(asked.agent_id.as_ref().or(asked.agent_name.as_ref())).await?;
    only_harness(asked.harness_id.as_ref().or(asked.harness_name.as_ref()))?;
    let model = sessions.model(asked.model_id.as_deref()).await?;
    let built_in =
        SessionSettings { harness_id: wire::HARNESS_ID.to_owned(), agent_id, ..SessionSettings::default() };
    let settings = asked.over(built_in, model)?;
    let idempotency_key = key.map(|key| format!("{path} {key}")).unwrap_or_default();
    let request_digest = grants::sha256(&*body);
    let (caller, settings) = (sessions.caller(), Some(settings));
    let asked = CreateSessionRequest { caller, settings, idempotency_key, request_digest };
    let session = sessions.upstream().create(asked).await?;
    let location = HeaderValue::try_from(format!("{path}/{}", session.id));
    let mut response = (StatusCode::CREATED, Json(objects::session(session))).into_response();
    if let Ok(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// There is one harness.
fn only_harness(asked: Option<&String>) -> Result<(), Problem> {
    match asked {
        Some(asked) if asked != wire::HARNESS_ID && asked != NAME => Err(Problem::missing("harness", asked)),
        Some(_) | None => Ok(()),
    }
}

/// `GET /v1/sessions`
async fn list(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let query = Query::parse(request.uri().query());
    let after = query.text("after").unwrap_or_default().to_owned();
    let listed = sessions.upstream().list(sessions.caller(), query.limit()?, after).await?;
    Ok(data(listed.into_iter().map(objects::session).collect()))
}

/// `GET /v1/sessions/{id}`
async fn inspect(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let session = sessions.upstream().get(sessions.caller(), &ids_of(&request)?).await?;
    Ok(Json(objects::session(session)))
}

/// `PATCH /v1/sessions/{id}`
async fn update(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let id = ids_of(&request)?;
    let body = body::read_json(request, &sessions.shared).await?;
    let model = sessions.model(request::read::<SessionBody>(&body)?.model_id.as_deref()).await?;
    for _ in 0..CHANGES {
        let before = sessions.upstream().get(sessions.caller(), &id).await?.settings.unwrap_or_default();
        let settings = request::read::<SessionBody>(&body)?.over(before.clone(), model.clone())?;
        let updated = sessions.upstream().update(sessions.caller(), &id, settings, before).await;
        if let Some(session) = changed(updated)? {
            return Ok(Json(objects::session(session)));
        }
    }
    Err(too_often())
}

/// What a change came to; none if another one came first.
fn changed<T>(updated: Result<T, Status>) -> Result<Option<T>, Problem> {
    match updated {
        Err(status) if status.code() == Code::Aborted => Ok(None),
        updated => Ok(Some(updated?)),
    }
}

fn too_often() -> Problem {
    Problem::new(StatusCode::CONFLICT, "it changes too often: try again")
}

/// `DELETE /v1/sessions/{id}`
async fn delete(sessions: Sessions, request: Request) -> Result<StatusCode, Problem> {
    sessions.upstream().delete(sessions.caller(), &ids_of(&request)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/sessions/{id}/messages`
async fn messages(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let (id, query) = (ids_of(&request)?, Query::parse(request.uri().query()));
    let after = query.number("after_sequence")?.unwrap_or_default();
    let listed = sessions.upstream().messages(sessions.caller(), &id, query.limit()?, after).await?;
    let messages: Vec<_> =
        listed.messages.into_iter().map(|placed| objects::placed_message(&id, placed)).collect();
    Ok(Json(json!({ "data": messages, "has_more": listed.has_more })))
}

/// `POST /v1/sessions/{id}/messages`
async fn say(sessions: Sessions, request: Request) -> Result<Response, Problem> {
    let (id, query) = (ids_of(&request)?, Query::parse(request.uri().query()));
    let key = idempotency_key(request.headers())?;
    let waits = query.flag("wait")? == Some(true);
    let time = waiting::time(query.number("timeout_ms")?);
    let body = body::read_json(request, &sessions.shared).await?;
    let body: MessageBody = request::read(&body)?;
    let model = sessions.model(body.model()).await?;
    let client_message_id = body.client_message_id.clone().or(key).unwrap_or_default();
    if client_message_id.len() > LONGEST_KEY || client_message_id.contains(char::is_control) {
        return Err(Problem::bad(format!("client_message_id: at most {LONGEST_KEY} printable characters")));
    }
    let message = Some(body.message(model)?);
    let (caller, session_id) = (sessions.caller(), id.clone());
    let asked = PostMessageRequest { caller, session_id, message, client_message_id };
    let posted = sessions.upstream().post(asked).await?;
    if waits {
        return sessions.wait(&id, posted, time).await;
    }
    Ok((StatusCode::CREATED, Json(objects::posted(&id, posted))).into_response())
}

/// `GET /v1/sessions/{id}/sse`
async fn watch(sessions: Sessions, request: Request) -> Result<Response, Problem> {
    let (id, query) = (ids_of(&request)?, Query::parse(request.uri().query()));
    let (cursor, filter) = (query.cursor(request.headers())?, query.filter()?);
    let shared = &sessions.shared;
    let seat = shared.seats.take(&sessions.asker.caller.account, &id)?;
    let until = Instant::now() + stream::cycle(shared.config.stream_time);
    let cursor = match cursor {
        Some(cursor) => cursor,
        // A place, so that no agent that is lost takes what comes with it.
        None => sessions.present(&id).await?,
    };
    let (agent, caller) = (sessions.upstream().clone(), sessions.caller());
    let wanted = SessionEvents { agent, caller, session: id, cursor, filter, until };
    let feed = Feed {
        events: Watching::begin(wanted, shared.config.agent_patience).await?,
        until,
        heartbeat: shared.config.heartbeat,
        stopping: shared.stopping.clone(),
        seat,
    };
    Ok(feed.answer())
}

/// `POST /v1/sessions/{id}/cancel`: whatever the body says.
async fn cancel(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let cancelled = sessions.upstream().cancel(sessions.caller(), &ids_of(&request)?).await?;
    Ok(Json(if cancelled {
        json!({ "status": "cancelled", "message": "The turn was cancelled" })
    } else {
        json!({ "status": "no_op", "message": "No turn was running" })
    }))
}

/// `POST /v1/sessions/{id}/tool-results`
async fn tool_results(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let id = ids_of(&request)?;
    let body = body::read_json(request, &sessions.shared).await?;
    let results = request::read::<ResultsBody>(&body)?.results()?;
    let accepted = sessions.upstream().results(sessions.caller(), &id, results).await?;
    Ok(Json(json!({ "accepted": accepted, "status": "active" })))
}

async fn harness(request: Request) -> Result<Json<Value>, Problem> {
    only_harness(Some(&last(&request)))?;
    Ok(Json(objects::harness()))
}

/// `GET /v1/models`
async fn models(sessions: Sessions) -> Result<Json<Value>, Problem> {
    let models = sessions.shared.upstream.catalogue(&sessions.asker.caller).await?;
    Ok(data(models.iter().map(objects::model).collect()))
}

/// `GET /v1/models/{id}`
async fn model(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let asked = last(&request);
    let models = sessions.shared.upstream.catalogue(&sessions.asker.caller).await?;
    let found = models.iter().find(|model| model.name == asked || ids::model(&model.name) == asked);
    found.map(|model| Json(objects::model(model))).ok_or_else(|| Problem::missing("model", &asked))
}
