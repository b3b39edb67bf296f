//! The table of routes, and the layers around them.

use std::sync::Arc;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    response::Response,
    routing::{get, post},
};
use http::{StatusCode, Uri};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    admin, auth, dialect, exchange, guard, harness, holmes, ops, problem::Problem, robusta, runs, sessions,
    state::Shared,
};

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let routes = Router::new()
        .route("/healthz", get(ops::health))
        .route("/readyz", get(ops::ready))
        .route("/metrics", get(ops::metrics))
        .merge(holmes::routes())
        .merge(robusta::routes())
        .merge(admin::routes())
        .merge(sessions::routes())
        .merge(harness::routes())
        .route("/api/runs", get(runs::list))
        .route("/api/runs/{id}", get(runs::inspect))
        .route("/api/runs/{id}/cancel", post(runs::cancel))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed);

    // From the inside out: the last layer sees a request first.
    let mut layered = routes
        .layer(from_fn_with_state(Arc::clone(&shared), auth::layer))
        .layer(from_fn_with_state(Arc::clone(&shared), guard::layer));
    if let Some(cors) = guard::cors(&shared.config) {
        layered = layered.layer(cors);
    }
    layered
        .layer(CatchPanicLayer::custom(exchange::panicked))
        .layer(from_fn(exchange::layer))
        .with_state(shared)
}

async fn not_found(path: Uri) -> Response {
    dialect::refusal(path.path(), Problem::new(StatusCode::NOT_FOUND, "Not Found"))
}

async fn not_allowed(path: Uri) -> Response {
    dialect::refusal(path.path(), Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"))
}
