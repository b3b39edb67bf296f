//! Errors before a stream: `{"error": …}`.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

use crate::problem::Problem;

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Refusal(Problem);

impl Refusal {
    pub(super) fn bad(why: &str) -> Self {
        Self(Problem::new(StatusCode::BAD_REQUEST, why))
    }

    pub(super) fn not_json() -> Self {
        Self::bad("Invalid JSON body")
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self(Problem::new(StatusCode::NOT_FOUND, what))
    }
}

impl<T: Into<Problem>> From<T> for Refusal {
    fn from(problem: T) -> Self {
        Self(problem.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.0.reworded(|text| json!({ "error": text }).to_string().into_bytes())
    }
}
