//! The HolmesGPT dialects: the current one, `POST /api/chat` and `GET /api/model`, and the older one.
//!
//! * `request`, `fields`, `raw`, `invalid`: what clients send, and the 422 that they get for anything else
//! * `history`: the conversation that clients hold, in and out
//! * `encode`, `events`: domain events in, wire events out
//! * `compaction`: the wire events of conversations that were too long
//! * `reply`: the same, gathered into one JSON answer
//! * `older`: investigations, issues and workloads, which are questions of another shape

mod compaction;
mod encode;
mod events;
mod fields;
mod frontend;
mod history;
mod invalid;
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
use http::HeaderValue;
use serde::Serialize;
use wire::agent::ChatRequest;

use crate::{
    answer::Answer,
    body,
    exchange::{RUN_ID, RequestId},
    problem::Problem,
    state::Shared,
};
use encode::Encoder;
use reply::Reply;

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
    let request::Question { stream, chat } = request::parse(&body, streams)?;
    drop(body);
    let answer = ask(shared, chat).await?;
    let run_id = answer.run_id().to_owned();
    let encoder = Encoder::new(id.into_string());
    let response = if stream {
        answer.stream(encoder, shared.config.heartbeat)
    } else {
        let (end, tool_calls) = reply::gather(answer, encoder).await?;
        Json(Reply::new(end, tool_calls)).into_response()
    };
    Ok(with_run_id(response, &run_id))
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
