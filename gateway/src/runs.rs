//! Runs as objects: list, inspect, cancel.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{
        Path, Query, Request, State,
        rejection::{PathRejection, QueryRejection},
    },
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use wire::agent::{RunInfo, RunState};

use crate::{asker::Asker, body, problem::Problem, state::Shared};

#[derive(Deserialize)]
pub(crate) struct ListQuery {
    #[serde(default)]
    limit: u32,
}

#[derive(Serialize)]
pub(crate) struct Runs {
    runs: Vec<Run>,
}

/// A run as JSON.
#[derive(Serialize)]
pub(crate) struct Run {
    run_id: String,
    state: &'static str,
    question: String,
    model: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    last_position: u64,
    steps: u32,
    tool_calls: u32,
    prompt_tokens: u64,
    completion_tokens: u64,
    cost_usd: f64,
    readers: u32,
}

#[derive(Default, Deserialize)]
struct CancelBody {
    reason: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Cancelled {
    run_id: String,
    state_before: &'static str,
}

/// `GET /api/runs?limit=N`: newest first.
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Runs>, Problem> {
    let Query(query) = query
        .map_err(|_| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "`limit` must be a whole number"))?;
    let runs = shared.upstream.runs(&asker.caller, query.limit).await?;
    Ok(Json(Runs { runs: runs.into_iter().map(Run::from).collect() }))
}

/// `GET /api/runs/{id}`.
pub(crate) async fn inspect(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Run>, Problem> {
    Ok(Json(shared.upstream.run(&asker.caller, run_id(path)?).await?.into()))
}

/// `POST /api/runs/{id}/cancel`: the body is optional and may give a reason.
pub(crate) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Cancelled>, Problem> {
    let run_id = run_id(path)?;
    let body = body::read_json(request, &shared).await?;
    let body = if body.is_empty() {
        CancelBody::default()
    } else {
        serde_json::from_slice(&body).map_err(|_| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "The body must be empty or {\"reason\": TEXT}")
        })?
    };
    let reason = body.reason.unwrap_or_else(|| "cancelled over HTTP".to_owned());
    let state_before = state_name(shared.upstream.cancel(&asker.caller, run_id.clone(), reason).await?);
    Ok(Json(Cancelled { run_id, state_before }))
}

/// What is not even text is the id of no run.
fn run_id(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    path.map(|Path(id)| id).map_err(|_| Problem::new(StatusCode::NOT_FOUND, "Not Found"))
}

impl From<RunInfo> for Run {
    fn from(run: RunInfo) -> Self {
        let state = state_name(run.state());
        let totals = run.totals.unwrap_or_default();
        Self {
            run_id: run.run_id,
            state,
            question: run.question,
            model: run.model,
            started_at: run.started_at.map(|time| time.to_string()),
            ended_at: run.ended_at.map(|time| time.to_string()),
            last_position: run.last_position,
            steps: run.steps,
            tool_calls: run.tool_calls,
            prompt_tokens: totals.prompt_tokens,
            completion_tokens: totals.completion_tokens,
            cost_usd: totals.cost_usd,
            readers: run.readers,
        }
    }
}

fn state_name(state: RunState) -> &'static str {
    match state {
        RunState::Unspecified => "unknown",
        RunState::Running => "running",
        RunState::Finished => "finished",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
        RunState::Suspended => "suspended",
    }
}
