//! `POST /chat/relay/:relayId`: a person's decision about a call that waits.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Path, Request, State, rejection::PathRejection},
};
use domain::Rule;
use grants::Decider;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tonic::Code;
use wire::agent::{DecideOutcome, DecideRequest, RunState, decide_request::Settlement};

use super::{ids, refusal::Refusal};
use crate::{
    approvals::{Approvals, PendingCall, There},
    asker::Asker,
    body,
    state::Shared,
};

/// What the model reads of a call that a person denied without a reason.
const DENIED: &str = "Not run: the user refused this call.";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    session_id: Option<Value>,
    response: Option<Value>,
}

/// What the person says.
#[derive(Debug, Deserialize)]
struct Response {
    approved: bool,
    #[serde(default)]
    always: bool,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Done {
    success: bool,
}

pub(super) async fn answer(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Done>, Refusal> {
    let body = body::read_json(request, &shared).await?;
    let (session, response) = read(&body)?;
    let run = ids::run(&session);
    if !goes_on(&shared, &asker, &run).await? {
        return Err(Refusal::not_found("Session not found"));
    }
    let by = asker.decides();
    let unknown = || Refusal::not_found("Relay not found");
    let approvals = shared.approvals.as_ref().ok_or_else(unknown)?;
    let waiting = path.ok().and_then(|Path(id)| approvals.pending(&id, by).ok());
    let waiting = waiting.filter(|waiting| waiting.run == run).ok_or_else(unknown)?;
    let word =
        DecideRequest { caller: Some(asker.caller.clone()), ..word(approvals, &waiting, response, by) };
    match shared.upstream.decide(word).await {
        Ok(DecideOutcome::Counts) => Ok(Json(Done { success: true })),
        Ok(DecideOutcome::Repeated | DecideOutcome::Late | DecideOutcome::Unspecified) => Err(unknown()),
        Err(status) if matches!(status.code(), Code::NotFound | Code::FailedPrecondition) => Err(unknown()),
        Err(status) => Err(status.into()),
    }
}

fn read(body: &[u8]) -> Result<(String, Response), Refusal> {
    let value: Value = serde_json::from_slice(body).map_err(|_| Refusal::not_json())?;
    let required = || Refusal::bad("sessionId and response are required");
    let Body { session_id, response } = serde_json::from_value(value).map_err(|_| required())?;
    let (Some(Value::String(session)), Some(response)) = (session_id, response) else {
        return Err(required());
    };
    let response = serde_json::from_value(response)
        .map_err(|_| Refusal::bad("response.approved must be true or false; response.reason is a text"))?;
    Ok((session, response))
}

/// A session lives as long as its run.
async fn goes_on(shared: &Shared, asker: &Asker, run: &str) -> Result<bool, Refusal> {
    match shared.upstream.run(&asker.caller, run.to_owned()).await {
        Ok(run) => Ok(run.state() == RunState::Running),
        Err(status) if status.code() == Code::NotFound => Ok(false),
        Err(status) => Err(status.into()),
    }
}

/// What an executor is told of later calls: the beginnings that it offered, or else the rule that joins the client's.
fn standing(approvals: &Approvals, waiting: &PendingCall, by: Decider<'_>) -> Vec<Vec<u8>> {
    let (session, patterns) = (&waiting.session, waiting.patterns.clone());
    if patterns.is_empty() {
        return approvals.standing(waiting, session, waiting.prefixes.clone(), by).into_iter().collect();
    }
    let rule = Rule { tool: waiting.tool.clone(), parameters: patterns };
    approvals.by_rules(&[rule], session, There::Target(&waiting.target), by)
}

/// What the decision is worth.
fn word(approvals: &Approvals, waiting: &PendingCall, response: Response, by: Decider<'_>) -> DecideRequest {
    let always = response.approved && response.always;
    let settlement = match response.approved {
        true => Settlement::Grant(approvals.exact(waiting, by)),
        false => Settlement::Denial(response.reason.unwrap_or_else(|| DENIED.to_owned())),
    };
    let standing_grants = if always { standing(approvals, waiting, by) } else { Vec::new() };
    DecideRequest {
        caller: None,
        run_id: waiting.run.clone(),
        call_id: waiting.call.clone(),
        settlement: Some(settlement),
        standing_grants,
        always,
    }
}
