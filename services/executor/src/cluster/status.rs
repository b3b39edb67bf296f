//! Answers of the proxy itself, in the form that Kubernetes clients show to people.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use serde_json::json;

/// The body of an answer, whoever gives it.
pub(super) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Why the proxy answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It does not know who asks.
    Unauthorized,
    /// It does not let this through.
    Forbidden,
    /// The request, or its answer, is larger than it can look into.
    TooLarge,
    /// The API server cannot be asked.
    Unavailable,
}

impl Reason {
    fn code(self) -> (StatusCode, &'static str) {
        match self {
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "Forbidden"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
        }
    }
}

/// A `Status` that says what failed.
pub(super) fn failure(reason: Reason, message: &str) -> Response<Body> {
    let (code, name) = reason.code();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": name, "code": code.as_u16(),
    });
    let mut response = Response::new(whole(status.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A body that is there as a whole.
pub(super) fn whole(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}
