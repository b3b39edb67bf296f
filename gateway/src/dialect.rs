//! Errors in the words of the dialect that a path belongs to, where no handler of it says them.

use axum::response::{IntoResponse as _, Response};

use crate::{harness, problem::Problem, robusta, sessions};

/// An error as clients of a path read it.
pub(crate) fn refusal(path: &str, problem: Problem) -> Response {
    if robusta::speaks(path) {
        robusta::problem(problem)
    } else if sessions::speaks(path) {
        sessions::problem(problem)
    } else if harness::speaks(path) {
        harness::problem(problem)
    } else {
        problem.into_response()
    }
}
