//! Errors of this dialect: `application/problem+json`.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use tonic::{Code, Status};

use super::object::Object;

/// When trying again may help.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// An error answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something does not exist.
    pub(super) fn missing(what: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{what} {id} not found"))
    }

    fn retry_later(self) -> Self {
        Self { retry_after: Some(RETRY_AFTER), ..self }
    }

    pub(super) fn too_many(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_later()
    }
}

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        let text = status.message();
        match status.code() {
            Code::InvalidArgument | Code::OutOfRange => Self::bad(text),
            Code::NotFound => Self::new(StatusCode::NOT_FOUND, text),
            Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => {
                Self::new(StatusCode::CONFLICT, text)
            }
            Code::PermissionDenied => Self::new(StatusCode::FORBIDDEN, text),
            Code::ResourceExhausted | Code::Unavailable => crate::problem::Problem::from(status).into(),
            Code::DeadlineExceeded => {
                tracing::warn!(error = %text, "the agent cannot be reached");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "The agent cannot be reached").retry_later()
            }
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::Internal
            | Code::DataLoss
            | Code::Unimplemented
            | Code::Unauthenticated => {
                tracing::error!(code = ?status.code(), error = %text, "the agent failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal server error")
            }
        }
    }
}

impl From<crate::problem::Problem> for Problem {
    fn from(problem: crate::problem::Problem) -> Self {
        let retry_after = problem.retries_after();
        Self { retry_after, ..Self::new(problem.status(), problem.text()) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let wait = self.retry_after.map(|wait| wait.as_secs());
        let body = Object::default()
            .with("title", self.status.canonical_reason().unwrap_or("Error"))
            .with("status", self.status.as_u16())
            .with("detail", self.detail)
            .may("retry_after_seconds", wait);
        let mut response = (self.status, Value::from(body).to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = wait {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}
