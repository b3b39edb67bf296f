//! Server-sent events: frames as bytes, and the response that carries them.

use std::fmt::Display;

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt as _};
use http::{HeaderName, HeaderValue, header};

/// A comment that keeps the connection alive. No empty line follows: after one, `fetch-event-source` delivers an event
/// without data, on which clients stumble.
pub(crate) const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n");

/// One event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Name of the event.
    pub(crate) event: &'static str,
    /// One line of JSON.
    pub(crate) data: String,
}

impl Frame {
    /// The frame's bytes. The id tells where to resume; frames that stand for no log entry have none. It comes last:
    /// some readers take it for seen before they have the rest.
    pub(crate) fn encode(&self, id: Option<&dyn Display>) -> Bytes {
        let Self { event, data } = self;
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        format!("event: {event}\ndata: {data}\n{id}\n").into()
    }
}

/// A response whose body is these bytes as they come.
pub(crate) fn response(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    const HEADERS: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Proxies such as nginx would otherwise hold frames back.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    let body = Body::from_stream(frames.map(Ok::<_, std::convert::Infallible>));
    (HEADERS, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_lines_and_a_blank_line() {
        let frame = Frame { event: "token_count", data: "{\"a\":\"é\u{2028}\"}".to_owned() };
        assert_eq!(
            frame.encode(Some(&"r:7")),
            "event: token_count\ndata: {\"a\":\"é\u{2028}\"}\nid: r:7\n\n"
        );
        assert_eq!(frame.encode(None), "event: token_count\ndata: {\"a\":\"é\u{2028}\"}\n\n");
    }
}
