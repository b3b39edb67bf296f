//! Errors of this dialect: `application/problem+json`.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use tonic::{Code, Status};

use super::object::Object;
use crate::problem;

/// An error answer in this dialect's words.
#[derive(Debug)]
pub(crate) struct Problem(problem::Problem);

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(problem::Problem::new(status, detail))
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something does not exist.
    pub(super) fn missing(what: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{what} {id} not found"))
    }

    pub(super) fn too_many(detail: impl Into<String>) -> Self {
        Self(problem::Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_later())
    }
}

impl From<problem::Problem> for Problem {
    fn from(problem: problem::Problem) -> Self {
        Self(problem)
    }
}

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        Self(match status.code() {
            // The request is well made: the session is not in a state for it.
            Code::FailedPrecondition => problem::Problem::new(StatusCode::CONFLICT, status.message()),
            // Nothing here takes its time but the agent.
            Code::DeadlineExceeded => Status::unavailable(status.message()).into(),
            _ => status.into(),
        })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, wait) = (self.0.status(), self.0.retries_after());
        let mut response = self.0.reworded(|detail| {
            let body = Object::default()
                .with("title", status.canonical_reason().unwrap_or("Error"))
                .with("status", status.as_u16())
                .with("detail", detail)
                .may("retry_after_seconds", wait.map(|wait| wait.as_secs()));
            Value::from(body).to_string().into_bytes()
        });
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
