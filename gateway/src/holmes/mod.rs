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
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use grants::Decider;
use http::{HeaderValue, StatusCode};
use runtime::clock;
use serde::Serialize;
use wire::agent::ChatRequest;

use crate::{
    answer::Answer,
    body,
    exchange::{RUN_ID, RequestId},
    problem::Problem,
    sse,
    state::{ACCOUNT, Shared},
};
use encode::Encoder;
use reply::{End, Reply};

/// The routes of both dialects.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/chat", post(chat))
        .route("/api/stream/chat", post(stream_chat))
        .route("/api/model", get(models))
        .merge(older::routes())
}

/// `POST /api/chat`.
async fn chat(
    State(shared): State<Arc<Shared>>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    answer_chat(&shared, id, request, false).await
}

/// `POST /api/stream/chat`: the same, always streamed.
async fn stream_chat(
    State(shared): State<Arc<Shared>>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    answer_chat(&shared, id, request, true).await
}

async fn answer_chat(
    shared: &Shared,
    id: RequestId,
    request: Request,
    streams: bool,
) -> Result<Response, Problem> {
    let body = body::read_json(request, &shared.config).await?;
    let request::Question { stream, mut chat, decided } = request::parse(&body, streams)?;
    drop(body);
    let by = Decider { account: ACCOUNT, principal: "", now: clock::unix_nanos() / 1_000_000_000 };
    if let Err(nothing) = decided.apply(&mut chat, shared.approvals.as_ref(), by) {
        return Ok(refused(&nothing.to_string(), stream));
    }
    let answer = ask(shared, chat).await?;
    let run_id = answer.run_id().to_owned();
    let encoder = Encoder::new(id.into_string(), shared.approvals.clone());
    let response = if stream {
        answer.stream(encoder, shared.config.heartbeat)
    } else {
        let reply = match reply::gather(answer, encoder).await? {
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

/// Asks the agent. By configuration the default model stands for unknown ones.
async fn ask(shared: &Shared, mut chat: ChatRequest) -> Result<Answer, Problem> {
    if shared.config.unknown_model_falls_back && !chat.model.is_empty() {
        let known = shared.upstream.models().await?;
        if !known.contains(&chat.model) {
            tracing::warn!("an unknown model was asked for; the default one answers");
            chat.model.clear();
        }
    }
    shared.ask(chat).await
}

fn with_run_id(mut response: Response, run_id: &str) -> Response {
    if let Ok(run_id) = HeaderValue::try_from(run_id) {
        response.headers_mut().insert(RUN_ID, run_id);
    }
    response
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
async fn models(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let names = shared.upstream.models().await?;
    let model_name = if shared.config.model_list_as_string {
        ModelNames::Text(serde_json::json!(names).to_string())
    } else {
        ModelNames::List(names)
    };
    Ok(Json(Models { model_name }).into_response())
}
