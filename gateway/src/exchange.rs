//! What every request gets: an id, a span in the caller's trace, metrics, and an answer even after a panic.

use std::any::Any;

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use metrics::{counter, histogram};
use tokio::time::Instant;
use tracing::{Instrument as _, Span, field::Empty};
use uuid::Uuid;

use crate::{problem::Problem, telemetry};

/// Carries the id of a request, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Carries the id of the run that answers.
pub(crate) const RUN_ID: HeaderName = HeaderName::from_static("x-sleuth-run-id");

const LONGEST_ID: usize = 128;

/// The id of a request: the client's, or a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(String);

impl RequestId {
    fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let usable =
            |id: &&str| (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
        Self(given.filter(usable).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned))
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// The outermost layer.
pub(crate) async fn layer(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers());
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let span = span(&request, &route, &id);
    runtime::propagation::extract(request.headers(), &span);
    request.extensions_mut().insert(id.clone());

    let mut response = next.run(request).instrument(span.clone()).await;

    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
        span.in_scope(|| tracing::warn!(status = status.as_u16(), "the request failed"));
    } else if status.is_client_error() {
        span.in_scope(|| tracing::info!(status = status.as_u16(), "the request was refused"));
    }
    counter!(telemetry::HTTP_REQUESTS, "route" => route.clone(), "status" => status.as_u16().to_string())
        .increment(1);
    histogram!(telemetry::HTTP_LATENCY, "route" => route).record(started.elapsed());
    if let Ok(id) = HeaderValue::try_from(id.0) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

fn span(request: &Request, route: &str, id: &RequestId) -> Span {
    let user_agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    tracing::info_span!(
        "http.request",
        otel.name = format_args!("{} {route}", request.method()),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = %request.method(),
        http.route = route,
        http.response.status_code = Empty,
        url.path = request.uri().path(),
        user_agent.original = user_agent,
        request.id = id.0,
    )
}

/// Names the run that answers.
pub(crate) fn with_run_id(mut response: Response, run_id: &str) -> Response {
    if let Ok(run_id) = HeaderValue::try_from(run_id) {
        response.headers_mut().insert(RUN_ID, run_id);
    }
    response
}

/// The answer to a request whose handler panicked.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usable_id_of_the_client_is_kept() {
        let of = |id: &str| {
            let id = HeaderValue::from_bytes(id.as_bytes()).unwrap();
            RequestId::of(&HeaderMap::from_iter([(REQUEST_ID, id)])).into_string()
        };
        assert_eq!(of("abc-1"), "abc-1");
        assert_eq!(of(&"x".repeat(128)), "x".repeat(128));
        for unusable in ["", "a b", "é", &"x".repeat(129)] {
            assert!(Uuid::parse_str(&of(unusable)).is_ok(), "{unusable}");
        }
    }
}
