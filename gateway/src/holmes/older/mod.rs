//! The older HolmesGPT dialect: investigations of issues and health checks of workloads, and chats about both.
//! All of them become questions for the same agent, and their answers are those of the current dialect, reshaped.
//!
//! * `request`: what clients send; `prompt`: what the model is told of it
//! * `template`: prompts by name, or with placeholders
//! * `sections`: what an investigation's answer is divided into; `markdown`: what models write
//! * `reply`: the answer, streamed and not

mod markdown;
mod prompt;
mod reply;
mod request;
mod sections;
mod template;

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::{MethodRouter, post},
};
use http::StatusCode;

use crate::{asker::Asker, body, exchange::RequestId, problem::Problem, resume::Again, state::Shared};
use reply::{Encoder, Whole};
use request::Asked;

use super::{
    encode,
    reply::{End, gather},
};

/// How an answer is given.
#[derive(Clone, Copy, Debug)]
enum Delivery {
    Whole,
    Streamed,
}

/// Reads a body.
type Read = fn(&[u8]) -> Result<Asked, Problem>;

/// The routes of this dialect.
pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/investigate", route(request::investigation, Delivery::Whole))
        .route("/api/stream/investigate", route(request::investigation, Delivery::Streamed))
        .route("/api/issue_chat", route(request::issue_chat, Delivery::Whole))
        .route("/api/stream/issue_chat", route(request::issue_chat, Delivery::Streamed))
        .route("/api/workload_health_check", route(request::workload_check, Delivery::Whole))
        .route("/api/workload_health_chat", route(request::workload_chat, Delivery::Whole))
}

fn route(read: Read, delivery: Delivery) -> MethodRouter<Arc<Shared>> {
    post(
        move |State(shared): State<Arc<Shared>>,
              Extension(asker): Extension<Asker>,
              Extension(id): Extension<RequestId>,
              request: Request| answer(shared, asker, id, request, read, delivery),
    )
}

async fn answer(
    shared: Arc<Shared>,
    asker: Asker,
    id: RequestId,
    request: Request,
    read: Read,
    delivery: Delivery,
) -> Result<Response, Problem> {
    let again = Again::of(request.headers())?;
    let route = request.uri().path().to_owned();
    let body = body::read_json(request, &shared).await?;
    let Asked { mut chat, form, shown } = read(&body)?;
    again.mark(&route, &body, &mut chat);
    let answer = super::ask(&shared, &asker, chat, again, body.into_room()).await?;
    let run_id = answer.run_id().to_owned();
    let mut encoder = encode::Encoder::new(id.into_string(), None);
    let response = match delivery {
        Delivery::Streamed => answer.stream(Encoder::new(encoder, form, shown), shared.config.heartbeat),
        Delivery::Whole => {
            let (End::Answered(end), calls) = gather(answer, &mut encoder).await? else {
                // Nobody can be asked here, and the agent was told so.
                return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The run waits for an approval"));
            };
            Json(Whole::new(*end, calls, &form, shown)).into_response()
        }
    };
    Ok(super::with_run_id(response, &run_id))
}
