//! The dialect of Robusta's hosted Holmes chat: one question about one cluster of an account.
//!
//! * `request`: what clients send
//! * `cluster`: which cluster it is about
//! * `events`: the events of the HolmesGPT dialect in this one's form
//! * `problem`: errors in this dialect's words

mod cluster;
mod events;
mod problem;
mod request;

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::{IntoResponse as _, Response},
    routing::post,
};
use runtime::scope::Scope;

use crate::{
    asker::Asker,
    auth, body,
    exchange::{RequestId, with_run_id},
    holmes::{self, Encoder},
    resume::Again,
    state::Shared,
};
use events::{Projection, Reply};
use problem::Failure;

pub(crate) use problem::problem;

/// The only route.
pub(crate) const CHAT: &str = "/api/holmes/{account_id}/chat";

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route(CHAT, post(chat))
}

/// Whether a path is this dialect's.
pub(crate) fn speaks(path: &str) -> bool {
    path.starts_with("/api/holmes/")
}

/// `POST /api/holmes/{account_id}/chat`. What is checked first tells least: who asks, whether they may, what, of which
/// cluster.
async fn chat(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    Extension(id): Extension<RequestId>,
    account: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Failure> {
    if account.ok().is_none_or(|Path(account)| account != asker.caller.account) {
        return Err(auth::unknown().into());
    }
    auth::require(&asker, Scope::Ask)?;
    let mut again = Again::of(request.headers())?;
    let route = request.uri().path().to_owned();
    let body = body::read_json(request, &shared).await?;
    let about = request::about(&body)?;
    cluster::permit(&about, &asker)?;
    let mut question = request::question(&body, &about)?;
    again.mark(&route, &body, &mut question.chat);
    if again.cursor.is_none() {
        again.cursor = shared.begun(&asker, &question.chat).await?;
    }
    // A run that has begun stays where it is, whatever is connected now.
    if again.cursor.is_none() {
        question.chat.cluster = cluster::choose(&about, &asker, &shared).await?;
        question.decided.apply(&mut question.chat, shared.approvals.as_ref(), asker.decides())?;
    }
    let answer = holmes::ask(&shared, &asker, question.chat, again, body.into_room()).await?;
    let run = answer.run_id().to_owned();
    let mut encoder = Encoder::new(id.into_string(), shared.approvals.clone());
    let response = if question.stream {
        answer.stream(Projection::new(encoder), shared.config.heartbeat)
    } else {
        let (end, _) = holmes::gather(answer, &mut encoder).await.map_err(Failure::run)?;
        Json(Reply::new(encoder.cluster().to_owned(), end)).into_response()
    };
    Ok(with_run_id(response, &run))
}
