//! Routes for operators: health, readiness, metrics.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde::Serialize;

use crate::{problem::Problem, state::Shared};

#[derive(Serialize)]
pub(crate) struct Health {
    status: &'static str,
}

/// `GET /healthz`: the process serves. Nothing else is looked at.
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "healthy" })
}

#[derive(Serialize)]
struct Ready {
    status: &'static str,
    models: Vec<String>,
}

/// `GET /readyz`: whether questions can be answered now.
pub(crate) async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let missing = match shared.upstream.readiness().await {
        Ok(agent) if agent.ready => {
            return Ok(Json(Ready { status: "ready", models: agent.models }).into_response());
        }
        Ok(agent) => agent.missing.join("; "),
        Err(status) => {
            tracing::warn!(error = %status.message(), "readiness is not known");
            "the agent cannot be reached".to_owned()
        }
    };
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, &format!("Service not ready: {missing}")))
}

/// `GET /metrics`: Prometheus' text format.
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shared.config.metrics.render())
}
