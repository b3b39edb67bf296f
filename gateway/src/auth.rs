//! Who may ask: everybody, or whoever presents the key.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;

use crate::{problem::Problem, state::Shared};

/// Paths that need no key, so that orchestrators can probe. Compared with the path as it was sent.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Refuses requests without the key, before anything tells them which routes exist.
pub(crate) async fn layer(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let open = OPEN_PATHS.contains(&request.uri().path());
    let key = shared.config.api_key.as_ref();
    if open || key.is_none_or(|key| runtime::auth::is_authorized(request.headers(), key)) {
        next.run(request).await
    } else {
        Problem::new(StatusCode::UNAUTHORIZED, "Invalid or missing API key").into_response()
    }
}
