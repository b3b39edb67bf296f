//! The current HolmesGPT dialect: `POST /api/chat` and `GET /api/model`.
//!
//! * `request`, `raw`, `invalid`: what clients send, and the 422 that they get for anything else
//! * `history`: the conversation that clients hold, in and out
//! * `encode`, `events`: domain events in, wire events out
//! * `reply`: the same, gathered into one JSON answer

mod encode;
mod events;
mod history;
mod invalid;
mod raw;
mod reply;
mod request;

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use http::HeaderValue;
use serde::Serialize;

use crate::{
    body,
    exchange::{RUN_ID, RequestId},
    problem::Problem,
    state::Shared,
};
use encode::Encoder;

/// `POST /api/chat`.
pub(crate) async fn chat(
    State(shared): State<Arc<Shared>>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    let body = body::read_json(request, &shared.config).await?;
    let request::Question { stream, mut chat } = request::parse(&body)?;
    drop(body);
    if shared.config.unknown_model_falls_back && !chat.model.is_empty() {
        let known = shared.upstream.models().await?;
        if !known.contains(&chat.model) {
            tracing::warn!("an unknown model was asked for; the default one answers");
            chat.model.clear();
        }
    }
    let answer = shared.ask(chat).await?;
    let run_id = HeaderValue::try_from(answer.run_id());
    let encoder = Encoder::new(id.into_string());
    let mut response = if stream {
        answer.stream(encoder, shared.config.heartbeat)
    } else {
        reply::gather(answer, encoder).await.into_response()
    };
    if let Ok(run_id) = run_id {
        response.headers_mut().insert(RUN_ID, run_id);
    }
    Ok(response)
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
pub(crate) async fn models(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let names = shared.upstream.models().await?;
    let model_name = if shared.config.model_list_as_string {
        ModelNames::Text(serde_json::json!(names).to_string())
    } else {
        ModelNames::List(names)
    };
    Ok(Json(Models { model_name }).into_response())
}
