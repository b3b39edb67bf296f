//! Who may ask, and what: by the server's own key, by a key that the agent keeps, or everybody.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, Method, StatusCode};
use runtime::{
    auth::{is_authorized, presented},
    scope::Scope,
    token::Token,
};
use tonic::Code;

use crate::{asker::Asker, dialect, passing::PassedHeaders, problem::Problem, robusta, state::Shared};

/// Paths that need no key, so that orchestrators can probe. Compared with the path as it was sent.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Refuses whoever is not known, before anything tells them which routes exist, and what they may not do.
pub(crate) async fn layer(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    if OPEN_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match identify(&shared, request.headers()).await.and_then(|asker| permitted(asker, &request)) {
        Ok(asker) => {
            let headers = PassedHeaders::of(request.headers(), &shared.config.passed_headers);
            request.extensions_mut().insert(Asker { headers, ..asker });
            next.run(request).await
        }
        Err(problem) => dialect::refusal(request.uri().path(), problem),
    }
}

/// Who asks.
async fn identify(shared: &Shared, headers: &HeaderMap) -> Result<Asker, Problem> {
    let config = &shared.config;
    if config.api_key.as_ref().is_some_and(|key| is_authorized(headers, key)) {
        return Ok(Asker::operator());
    }
    match presented(headers).find_map(Token::read) {
        Some(key) => match shared.upstream.authenticate(&key).await {
            Ok(answer) => Ok(Asker::known(answer)),
            Err(status) if matches!(status.code(), Code::Unauthenticated | Code::Unimplemented) => {
                Err(unknown())
            }
            Err(status) => Err(status.into()),
        },
        None if config.is_open() => Ok(Asker::nobody()),
        None => Err(unknown()),
    }
}

/// Nobody learns why a key does not count.
pub(crate) fn unknown() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "Invalid or missing API key")
}

/// Refuses what the key is not for.
pub(crate) fn require(asker: &Asker, needed: Scope) -> Result<(), Problem> {
    if asker.scopes.allow(needed) {
        return Ok(());
    }
    let why = format!("The API key lacks the permission {needed}");
    Err(Problem::new(StatusCode::FORBIDDEN, why))
}

fn permitted(asker: Asker, request: &Request) -> Result<Asker, Problem> {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    match route.and_then(|route| needed(request.method(), route)) {
        Some(needed) => require(&asker, needed).map(|()| asker),
        None => Ok(asker),
    }
}

/// What a route needs; `None` for one that looks for itself.
fn needed(method: &Method, route: &str) -> Option<Scope> {
    Some(match route {
        robusta::CHAT => return None,
        "/metrics" => Scope::Metrics,
        "/api/admin/audit" => Scope::Audit,
        route if route.starts_with("/api/admin/") => Scope::Admin,
        _ if *method == Method::GET || *method == Method::HEAD => Scope::Read,
        _ => Scope::Ask,
    })
}
