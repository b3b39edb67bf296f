//! What keeps other people's web pages away from a server that asks for no key.
//!
//! A page can make its visitor's browser send requests to `localhost`, and by DNS rebinding even read the
//! answers. So the server answers only to its own names, and to pages of its own or a configured origin.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority};
use tower_http::cors::CorsLayer;

use crate::{
    config::{Config, Origin},
    dialect,
    exchange::{REQUEST_ID, RUN_ID},
    problem::Problem,
    sessions::TOTAL,
    state::Shared,
};

/// Refuses what a page of somebody else makes a browser send. A key makes this needless: pages do not have it.
pub(crate) async fn layer(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let config = &shared.config;
    let refusal = if config.is_open() { refusal(config, &request) } else { None };
    match refusal {
        Some((status, detail)) => dialect::refusal(request.uri().path(), Problem::new(status, detail)),
        None => next.run(request).await,
    }
}

fn refusal(config: &Config, request: &Request) -> Option<(StatusCode, &'static str)> {
    let headers = request.headers();
    let host = headers.get(header::HOST).map(|host| Authority::try_from(host.as_bytes()).ok());
    let target = request.uri().authority().cloned().map(Some);
    let mut names = [host, target].into_iter().flatten().peekable();
    if names.peek().is_none() || names.any(|name| !name.is_some_and(|name| is_ours(config, &name))) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "This server does not answer to that host name"));
    }
    let site = headers.get("sec-fetch-site");
    let foreign = match headers.get(header::ORIGIN) {
        Some(origin) => !is_allowed(config, origin) && !is_same_origin(request, origin),
        None => site.is_some_and(|site| site != "same-origin" && site != "none"),
    };
    foreign.then_some((StatusCode::FORBIDDEN, "Pages of other origins may not use this server"))
}

fn is_ours(config: &Config, name: &Authority) -> bool {
    let host = name.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        || config.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
}

fn is_allowed(config: &Config, origin: &HeaderValue) -> bool {
    config.allowed_origins.iter().any(|allowed| allowed.header() == origin)
}

/// The scheme is not compared: a proxy in front may speak TLS.
fn is_same_origin(request: &Request, origin: &HeaderValue) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(Authority::as_str));
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    matches!((host, origin), (Some(host), Some((_, origin))) if host.eq_ignore_ascii_case(origin))
}

/// The headers that let pages of the configured origins use the server; `None` if there are none.
pub(crate) fn cors(config: &Config) -> Option<CorsLayer> {
    if config.allowed_origins.is_empty() {
        return None;
    }
    let origins: Vec<_> = config.allowed_origins.iter().map(Origin::header).cloned().collect();
    let headers = [
        header::CONTENT_TYPE,
        header::AUTHORIZATION,
        HeaderName::from_static("last-event-id"),
        HeaderName::from_static("x-api-key"),
        HeaderName::from_static("traceparent"),
        HeaderName::from_static("tracestate"),
        HeaderName::from_static("idempotency-key"),
        REQUEST_ID,
    ];
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers(headers)
        .expose_headers([RUN_ID, REQUEST_ID, header::RETRY_AFTER, TOTAL]);
    Some(layer)
}
