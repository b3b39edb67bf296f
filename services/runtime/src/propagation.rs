//! W3C trace context: one question is one trace, whatever it passes through.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector};
use tonic::metadata::MetadataMap;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

struct Incoming<'a>(&'a HeaderMap);

impl Extractor for Incoming<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct Outgoing<'a>(&'a mut HeaderMap);

impl Injector for Outgoing<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (key.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            self.0.insert(name, value);
        }
    }
}

/// Makes a span the child of the caller's, if the headers name one.
pub fn extract(headers: &HeaderMap, span: &Span) {
    let parent = opentelemetry::global::get_text_map_propagator(|known| known.extract(&Incoming(headers)));
    // Without an exporter there is no trace to join.
    let _ = span.set_parent(parent);
}

/// Names the current span to whom is called.
pub fn inject(headers: &mut HeaderMap) {
    let context = Span::current().context();
    opentelemetry::global::get_text_map_propagator(|known| {
        known.inject_context(&context, &mut Outgoing(headers));
    });
}

/// [`extract`] for gRPC metadata.
pub fn extract_metadata(metadata: &MetadataMap, span: &Span) {
    extract(metadata.as_ref(), span);
}

/// [`inject`] for a gRPC request.
pub fn inject_request<T>(request: &mut tonic::Request<T>) {
    let mut headers = std::mem::take(request.metadata_mut()).into_headers();
    inject(&mut headers);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
}
