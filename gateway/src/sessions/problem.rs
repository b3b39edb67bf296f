//! Errors of this dialect: `application/problem+json`.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use tonic::{Code, Status};

use super::object::Object;

/// Seconds after which trying again may help.
const RETRY_AFTER: u64 = 5;

/// An error answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    retries: bool,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retries: false }
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something does not exist.
    pub(super) fn missing(what: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{what} {id} not found"))
    }

    pub(super) fn too_many(detail: impl Into<String>) -> Self {
        Self { retries: true, ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
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
            Code::ResourceExhausted => Self::too_many(text),
            Code::Unavailable | Code::DeadlineExceeded => {
                tracing::warn!(error = %text, "the agent cannot be reached");
                let detail = "The agent cannot be reached";
                Self { retries: true, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
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
        Self::new(problem.status(), problem.text())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Object::default()
            .with("title", self.status.canonical_reason().unwrap_or("Error"))
            .with("status", self.status.as_u16())
            .with("detail", self.detail)
            .may("retry_after_seconds", self.retries.then_some(RETRY_AFTER));
        let mut response = (self.status, Value::from(body).to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.retries {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        }
        response
    }
}
