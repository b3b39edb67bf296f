//! Routes for operators: health, readiness, metrics.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde::Serialize;
use tokio::{sync::Mutex, time::Instant};

use crate::{problem::Problem, state::Shared, upstream::Upstream};

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

/// How long an answer of the agent stands. Anybody may ask, and each question looks at its store and its executors.
const FRESH: Duration = Duration::from_secs(1);

/// The names of the models, or what is missing.
type Said = Result<Vec<String>, String>;

/// What the agent said last, and when.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Said)>>);

impl Readiness {
    async fn of(&self, upstream: &Upstream) -> Said {
        let mut known = self.0.lock().await;
        if let Some((at, answer)) = &*known
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        let answer = match upstream.readiness().await {
            Ok(agent) if agent.ready => Ok(agent.models),
            Ok(agent) => Err(agent.missing.join("; ")),
            Err(status) => {
                tracing::warn!(error = %status.message(), "readiness is not known");
                Err("the agent cannot be reached".to_owned())
            }
        };
        *known = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// `GET /readyz`: whether questions can be answered now.
pub(crate) async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    match shared.readiness.of(&shared.upstream).await {
        Ok(models) => Ok(Json(Ready { status: "ready", models }).into_response()),
        Err(missing) => {
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("Service not ready: {missing}")))
        }
    }
}

/// `GET /metrics`: Prometheus' text format.
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shared.config.metrics.render())
}
