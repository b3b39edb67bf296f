//! The harness dialect: `POST /chat`, `GET /models`, `POST /chat/relay/:relayId`.
//!
//! * `request`, `messages`, `permissions`: what clients send
//! * `relay`: decisions about calls that wait, while the stream is open
//! * `encode`, `events`, `ids`: domain events in, wire events out
//! * `refusal`: errors before a stream

mod encode;
mod events;
mod ids;
mod messages;
mod permissions;
mod refusal;
mod relay;
mod request;

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use domain::{Permissions, ToolProfile};
use grants::Decider;
use serde::Serialize;
use wire::agent::ChatRequest;

use crate::{
    approvals::There, asker::Asker, body, exchange::with_run_id, problem::Problem, resume::Again,
    state::Shared,
};
use encode::Encoder;
use refusal::Refusal;

/// The routes of the dialect.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/chat", post(chat))
        .route("/chat/relay/{relay}", post(relay::answer))
        .route("/models", get(models))
}

/// Whether a path is this dialect's.
pub(crate) fn speaks(path: &str) -> bool {
    matches!(path, "/chat" | "/models") || path.starts_with("/chat/")
}

/// An error that was found before this dialect was asked.
pub(crate) fn problem(problem: Problem) -> Response {
    Refusal::from(problem).into_response()
}

/// `POST /chat`: always a stream.
async fn chat(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    request: Request,
) -> Result<Response, Refusal> {
    let again = Again::of(request.headers())?;
    let route = request.uri().path().to_owned();
    let body = body::read_long_json(request, &shared, shared.config.input_limit).await?;
    let mut chat = request::parse(&body)?;
    again.mark(&route, &body, &mut chat);
    let room = body.into_room();
    let answer = match again.cursor {
        Some(cursor) => shared.attach(&asker, cursor).await?,
        None => {
            permit(&shared, asker.decides(), &mut chat);
            shared.ask(&asker, chat, room).await?
        }
    };
    let run_id = answer.run_id().to_owned();
    let encoder = Encoder::new(shared.approvals.clone());
    Ok(with_run_id(answer.stream(encoder, shared.config.heartbeat), &run_id))
}

/// Says to executors what the client's rules allow. Without a key nobody can say that.
fn permit(shared: &Shared, by: Decider<'_>, chat: &mut ChatRequest) {
    let Some(approvals) = &shared.approvals else {
        chat.approvals = false;
        return;
    };
    let rules: Permissions = chat.permissions.clone().map(Into::into).unwrap_or_default();
    let profile = if chat.rlm.is_some() { ToolProfile::Rlm } else { ToolProfile::Harness };
    for rules in [&rules.allow, &rules.allow_once] {
        chat.standing_grants.extend(approvals.by_rules(rules, &chat.session, There::Profile(profile), by));
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Models {
    models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_model: Option<String>,
}

/// `GET /models`.
async fn models(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
) -> Result<Json<Models>, Refusal> {
    let models = shared.upstream.catalogue(&asker.caller).await?;
    let default_model = models.iter().find(|model| model.is_default).map(|model| model.name.clone());
    Ok(Json(Models { models: models.into_iter().map(|model| model.name).collect(), default_model }))
}
