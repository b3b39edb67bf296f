//! Errors as HTTP clients see them: `{"detail": …}` with a status.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;
use tonic::Code;

/// When to try again where nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// An error answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: Detail,
    retry_after: Option<Duration>,
}

#[derive(Debug)]
enum Detail {
    Text(String),
    Json(Box<RawValue>),
}

#[derive(Serialize)]
struct Body<T> {
    detail: T,
}

impl Problem {
    /// An error that a text explains.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: Detail::Text(detail.into()), retry_after: None }
    }

    /// An error that needs more than a text.
    pub(crate) fn with_detail(status: StatusCode, detail: &(impl Serialize + ?Sized)) -> Self {
        // Serializing strings and lists of plain structs into memory cannot fail.
        let detail = Detail::Json(serde_json::value::to_raw_value(detail).unwrap_or_default());
        Self { status, detail, retry_after: None }
    }

    /// The same in the words of another dialect, which writes the body.
    pub(crate) fn reworded(self, body: impl FnOnce(&str) -> Vec<u8>) -> Response {
        let Self { status, detail, retry_after } = self;
        let body = match &detail {
            Detail::Text(text) => body(text),
            Detail::Json(json) => body(json.get()),
        };
        respond(status, body, retry_after)
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// When trying again may help.
    pub(crate) fn retries_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Says that trying again later may help.
    pub(crate) fn retry_later(self) -> Self {
        self.retry_after(Some(RETRY_AFTER))
    }

    /// The same with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Says when trying again may help, if that is known.
    pub(crate) fn retry_after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
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
            Code::ResourceExhausted => {
                let wait = status.metadata().get(wire::RETRY_AFTER).and_then(|wait| wait.to_str().ok());
                let wait = wait.and_then(|wait| wait.parse().ok()).map(Duration::from_secs);
                Self::new(StatusCode::TOO_MANY_REQUESTS, text).retry_after(wait.or(Some(RETRY_AFTER)))
            }
            Code::Unimplemented => Self::new(StatusCode::NOT_IMPLEMENTED, text),
            Code::DeadlineExceeded => Self::too_slow(),
            Code::Unavailable if status.metadata().contains_key(wire::FOR_THE_ASKER) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, text).retry_later()
            }
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
        // Serializing plain structs into memory cannot fail.
        let body = match self.detail {
            Detail::Text(detail) => serde_json::to_vec(&Body { detail }),
            Detail::Json(detail) => serde_json::to_vec(&Body { detail }),
        };
        respond(self.status, body.unwrap_or_default(), self.retry_after)
    }
}

fn respond(status: StatusCode, body: Vec<u8>, retry_after: Option<Duration>) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(wait) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
    response
}
