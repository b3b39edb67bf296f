//! Requests that come again: a stream that broke goes on where it was, and a repeated request starts nothing twice.

use http::{HeaderMap, HeaderName, StatusCode};
use wire::agent::ChatRequest;

use crate::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest key, in bytes.
pub(crate) const LONGEST_KEY: usize = 255;

/// What a request says of an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    /// The stream to go on with.
    pub(crate) cursor: Option<Cursor>,
    key: Option<String>,
}

/// A place in the stream of a run: the `id` of its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) run: String,
    /// The last position that the client has seen.
    pub(crate) after: u64,
}

impl Again {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let cursor = text(headers, &LAST_EVENT_ID)?.map(str::parse).transpose()?;
        Ok(Self { cursor, key: idempotency_key(headers)? })
    }

    /// Makes a question the same question as an earlier one with the same key on the same route.
    pub(crate) fn mark(&self, route: &str, body: &[u8], chat: &mut ChatRequest) {
        if let Some(key) = &self.key {
            chat.idempotency_key = format!("{route} {key}");
            chat.request_digest = grants::sha256(body);
        }
    }
}

/// What makes a repeated request the same request.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    match text(headers, &IDEMPOTENCY_KEY)? {
        Some(key) if key.len() > LONGEST_KEY => {
            Err(bad(format!("{IDEMPOTENCY_KEY}: it is longer than {LONGEST_KEY} characters")))
        }
        key => Ok(key.map(str::to_owned)),
    }
}

/// What a header says, if anything.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let text = headers.get(name).map(|value| value.to_str()).transpose();
    let text = text.map_err(|_| bad(format!("{name}: it is not ASCII text")))?;
    Ok(text.filter(|text| !text.is_empty()))
}

impl std::str::FromStr for Cursor {
    type Err = Problem;

    fn from_str(id: &str) -> Result<Self, Problem> {
        let (run, position) = id.rsplit_once(':').unwrap_or_default();
        match position.parse() {
            Ok(after) if !run.is_empty() => Ok(Self { run: run.to_owned(), after }),
            Ok(_) | Err(_) => Err(bad(
                "Last-Event-ID: it is not the id of an event of this server; leave it out to start anew",
            )),
        }
    }
}

fn bad(why: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, why)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_say_what_comes_again() {
        let of = |name, value: &str| {
            Again::of(&HeaderMap::from_iter([(name, HeaderValue::from_bytes(value.as_bytes()).unwrap())]))
        };
        let cursor = |id| of(LAST_EVENT_ID, id).map(|again| again.cursor);
        assert_eq!(cursor("run_1:7").unwrap(), Some(Cursor { run: "run_1".into(), after: 7 }));
        assert_eq!(cursor("").unwrap(), None);
        for bad in ["run_1", "run_1:", ":7", "run_1:-1", "7", "é:1"] {
            assert!(cursor(bad).is_err(), "{bad}");
        }
        assert!(of(IDEMPOTENCY_KEY, &"x".repeat(255)).is_ok());
        assert!(of(IDEMPOTENCY_KEY, &"x".repeat(256)).is_err());
    }
}
