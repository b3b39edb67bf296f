//! Errors as HTTP clients see them: `{"detail": …}` with a status.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tonic::Code;

/// When to try again where nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// An error answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    body: Vec<u8>,
    retry_after: Option<Duration>,
}

#[derive(Serialize)]
struct Body<'a, T: ?Sized> {
    detail: &'a T,
}

impl Problem {
    /// An error that a text explains.
    pub(crate) fn new(status: StatusCode, detail: &str) -> Self {
        Self::with_detail(status, detail)
    }

    /// An error that needs more than a text.
    pub(crate) fn with_detail(status: StatusCode, detail: &(impl Serialize + ?Sized)) -> Self {
        // Serializing strings and lists of plain structs into memory cannot fail.
        let body = serde_json::to_vec(&Body { detail }).unwrap_or_default();
        Self { status, body, retry_after: None }
    }

    /// Says that trying again later may help.
    pub(crate) fn retry_later(mut self) -> Self {
        self.retry_after = Some(RETRY_AFTER);
        self
    }

    pub(crate) fn overloaded() -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "Too many questions are being answered at the moment")
            .retry_later()
    }

    pub(crate) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "The server is shutting down").retry_later()
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "The answer took too long")
    }
}

impl From<tonic::Status> for Problem {
    fn from(status: tonic::Status) -> Self {
        let text = status.message();
        match status.code() {
            Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => {
                Self::new(StatusCode::BAD_REQUEST, text)
            }
            Code::NotFound => Self::new(StatusCode::NOT_FOUND, text),
            Code::AlreadyExists | Code::Aborted => Self::new(StatusCode::CONFLICT, text),
            Code::PermissionDenied => Self::new(StatusCode::FORBIDDEN, text),
            Code::ResourceExhausted => Self::new(StatusCode::TOO_MANY_REQUESTS, text).retry_later(),
            Code::Unimplemented => Self::new(StatusCode::NOT_IMPLEMENTED, text),
            Code::DeadlineExceeded => Self::too_slow(),
            Code::Unavailable => {
                tracing::warn!(error = %text, "the agent cannot be reached");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "The agent cannot be reached").retry_later()
            }
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated => {
                tracing::error!(code = ?status.code(), error = %text, "the agent failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The agent failed")
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        response
    }
}
