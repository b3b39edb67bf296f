//! Names and units of the gateway's metrics.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Requests by `route` and `status`. A request to no route has the route `unmatched`.
pub const HTTP_REQUESTS: &str = "sleuth_http_requests_total";
/// Seconds until the head of a response, by `route`.
pub const HTTP_LATENCY: &str = "sleuth_http_response_seconds";
/// Streams that are open now.
pub const HTTP_STREAMS: &str = "sleuth_http_streams";
/// Seconds from a question to the end of its stream.
pub const HTTP_STREAM_DURATION: &str = "sleuth_http_stream_seconds";

/// Tells the recorder of the process what the metrics mean.
pub(crate) fn describe() {
    describe_counter!(HTTP_REQUESTS, Unit::Count, "HTTP requests by route and status");
    describe_histogram!(HTTP_LATENCY, Unit::Seconds, "Time until the head of a response, by route");
    describe_gauge!(HTTP_STREAMS, Unit::Count, "Event streams that are open now");
    describe_histogram!(HTTP_STREAM_DURATION, Unit::Seconds, "Time that an event stream was open");
}
