//! Errors in this dialect's words: `{"msg": …, "error_code": …}`.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::{holmes::NothingWaits, problem::Problem};

/// Code of a run that failed.
const RUN_FAILED: &str = "HOLMES_ERROR";

#[derive(Serialize)]
struct Body<'a> {
    msg: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'static str>,
}

/// Why a request is not answered.
#[derive(Debug)]
pub(super) struct Failure {
    problem: Problem,
    code: Option<&'static str>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, msg: &str, code: &'static str) -> Self {
        Self { problem: Problem::new(status, msg), code: Some(code) }
    }

    /// A run that ended without an answer.
    pub(super) fn run(problem: Problem) -> Self {
        Self { problem: problem.with_status(StatusCode::INTERNAL_SERVER_ERROR), code: Some(RUN_FAILED) }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { problem, code: None }
    }
}

impl From<NothingWaits> for Failure {
    fn from(nothing: NothingWaits) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, nothing.to_string()).into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let code = self.code;
        self.problem.reworded(|detail| {
            let msg = first_line(detail);
            // Serializing plain structs into memory cannot fail.
            serde_json::to_vec(&Body { msg: &msg, error_code: code }).unwrap_or_default()
        })
    }
}

/// An error that was found before this dialect was asked.
pub(crate) fn problem(problem: Problem) -> Response {
    Failure::from(problem).into_response()
}

#[derive(Deserialize)]
struct Invalid {
    loc: Vec<serde_json::Value>,
    msg: String,
}

/// A list of what is wrong with a body as one text; any other text as it is.
fn first_line(detail: &str) -> String {
    let Ok(list) = serde_json::from_str::<Vec<Invalid>>(detail) else { return detail.to_owned() };
    let place = |loc: &[serde_json::Value]| {
        let parts =
            loc.iter().skip(1).map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
        parts.collect::<Vec<_>>().join(".")
    };
    let lines = list.iter().map(|one| match place(&one.loc) {
        place if place.is_empty() => one.msg.clone(),
        place => format!("{place}: {}", one.msg),
    });
    lines.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_body_becomes_one_text() {
        let list = r#"[{"type":"missing","loc":["body","ask"],"msg":"Field required","input":{}},
                       {"type":"x","loc":["body",3],"msg":"Bad"},{"type":"x","loc":["body"],"msg":"All"}]"#;
        assert_eq!(first_line(list), "ask: Field required; 3: Bad; All");
        assert_eq!(first_line("Plain"), "Plain");
    }
}
