//! The HolmesGPT dialects: the current one, `POST /api/chat` and `GET /api/model`, and the older one.
//!
//! * `request`, `fields`, `raw`, `invalid`: what clients send, and the 422 that they get for anything else
//! * `history`: the conversation that clients hold, in and out; `marks`: what is marked in it
//! * `frontend`, `approval`: what goes on at the client: its tools, and a person's decisions
//! * `encode`, `events`: domain events in, wire events out
//! * `compaction`: the wire events of conversations that were too long
//! * `reply`: the same, gathered into one JSON answer
//! * `older`: investigations, issues and workloads, which are questions of another shape

mod approval;
mod compaction;
mod encode;
mod events;
mod fields;
mod frontend;
mod history;
mod invalid;
mod item;
mod marks;
mod older;
mod raw;
mod reply;
mod request;

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    extract::{
        Path, Query, Request, State,
        rejection::{PathRejection, QueryRejection},
    },
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use wire::agent::ChatRequest;

use crate::{
    answer::Answer,
    asker::Asker,
    body,
    exchange::{RequestId, with_run_id},
    problem::Problem,
    resume::{Again, Cursor},
    sse,
    state::Shared,
};
use reply::Reply;

pub(crate) use approval::{NothingWaits, PendingApproval};
pub(crate) use encode::Encoder;
pub(crate) use events::{Event, ToolResult, json};
pub(crate) use history::Outgoing;
pub(crate) use reply::{End, gather};
pub(crate) use request::{Question, parse};

/// The routes of both dialects.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/chat", post(chat))
        .route("/api/stream/chat", post(stream_chat))
        .route("/api/model", get(models))
        .route("/api/runs/{id}/events", get(events))
        .merge(older::routes())
}

/// `POST /api/chat`.
async fn chat(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    answer_chat(&shared, &asker, id, request, false).await
}

/// `POST /api/stream/chat`: the same, always streamed.
async fn stream_chat(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    answer_chat(&shared, &asker, id, request, true).await
}

#[derive(Deserialize)]
struct EventsQuery {
    /// The last position that the client has seen.
    #[serde(default)]
    after: u64,
}

/// `GET /api/runs/{id}/events`: the stream of a run, for an `EventSource`.
async fn events(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    Extension(id): Extension<RequestId>,
    run: Result<Path<String>, PathRejection>,
    query: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let bad = |why: String| Problem::new(StatusCode::BAD_REQUEST, why);
    let Path(run) = run.map_err(|error| bad(error.body_text()))?;
    let Query(EventsQuery { after }) = query.map_err(|error| bad(error.body_text()))?;
    // A browser that reconnects knows better than the address that it was given.
    let cursor = Again::of(&headers)?.cursor.unwrap_or(Cursor { run: run.clone(), after });
    if cursor.run != run {
        return Err(bad("Last-Event-ID: it belongs to another run".to_owned()));
    }
    let answer = shared.attach(&asker, cursor).await?;
    let encoder = Encoder::new(id.into_string(), shared.approvals.clone());
    Ok(with_run_id(answer.stream(encoder, shared.config.heartbeat), &run))
}

async fn answer_chat(
    shared: &Shared,
    asker: &Asker,
    id: RequestId,
    request: Request,
    streams: bool,
) -> Result<Response, Problem> {
    let again = Again::of(request.headers())?;
    let route = request.uri().path().to_owned();
    let body = body::read_json(request, shared).await?;
    let Question { stream, mut chat, decided } = parse(&body, streams)?;
    again.mark(&route, &body, &mut chat);
    let room = body.into_room();
    let by = asker.decides();
    if again.cursor.is_none()
        && let Err(nothing) = decided.apply(&mut chat, shared.approvals.as_ref(), by)
    {
        return Ok(refused(&nothing.to_string(), stream));
    }
    let answer = ask(shared, asker, chat, again, room).await?;
    let run_id = answer.run_id().to_owned();
    let mut encoder = Encoder::new(id.into_string(), shared.approvals.clone());
    let response = if stream {
        answer.stream(encoder, shared.config.heartbeat)
    } else {
        let reply = match gather(answer, &mut encoder).await? {
            (End::Answered(end), tool_calls) => Reply::new(*end, tool_calls),
            (End::Waits(waits), tool_calls) => Reply::waiting(*waits, tool_calls),
        };
        Json(reply).into_response()
    };
    Ok(with_run_id(response, &run_id))
}

/// The answer to a request that goes on with nothing: clients that stream look for an event.
fn refused(why: &str, stream: bool) -> Response {
    if !stream {
        return Problem::new(StatusCode::BAD_REQUEST, why).into_response();
    }
    let frame = encode::error(StatusCode::BAD_REQUEST, why.to_owned()).frame().encode(None);
    sse::response(futures_util::stream::iter([frame]))
}

/// Asks the agent, or goes on with what it answers. By configuration the default model stands for unknown ones.
pub(crate) async fn ask(
    shared: &Shared,
    asker: &Asker,
    mut chat: ChatRequest,
    again: Again,
    room: body::Taken,
) -> Result<Answer, Problem> {
    if let Some(cursor) = again.cursor {
        return shared.attach(asker, cursor).await;
    }
    if shared.config.unknown_model_falls_back && !chat.model.is_empty() {
        let known = shared.upstream.models(&asker.caller).await?;
        if !known.contains(&chat.model) {
            tracing::warn!("an unknown model was asked for; the default one answers");
            chat.model.clear();
        }
    }
    shared.ask(asker, chat, room).await
}

#[derive(Serialize)]
struct Models {
    model_name: ModelNames,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ModelNames {
    List(Vec<String>),
    /// A JSON array inside a string.
    Text(String),
}

/// `GET /api/model`.
async fn models(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, Problem> {
    let names = shared.upstream.models(&asker.caller).await?;
    let model_name = if shared.config.model_list_as_string {
        ModelNames::Text(serde_json::json!(names).to_string())
    } else {
        ModelNames::List(names)
    };
    Ok(Json(Models { model_name }).into_response())
}
