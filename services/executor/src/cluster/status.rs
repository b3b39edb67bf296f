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

/// An answer that says what failed.
pub(super) fn failure(reason: Reason, message: &str) -> Response<Body> {
    match reason {
        Reason::Unauthorized => status(StatusCode::UNAUTHORIZED, "Unauthorized", message),
        Reason::Forbidden => status(StatusCode::FORBIDDEN, "Forbidden", message),
        Reason::TooLarge => status(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message),
        // While a client learns which kinds there are, this is the one form of which it shows the message.
        Reason::Unavailable => answer(StatusCode::BAD_GATEWAY, "text/plain", message.to_owned()),
    }
}

fn status(code: StatusCode, reason: &str, message: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    answer(code, "application/json", status.to_string())
}

fn answer(code: StatusCode, form: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(whole(body));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form));
    response
}

/// A body that is there as a whole.
pub(super) fn whole(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}
