//! W3C trace context: one question is one trace, whatever it passes through.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector};
use tonic::{Status, metadata::MetadataMap};
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

/// [`inject`] for gRPC calls, as an interceptor of a client.
///
/// # Errors
/// Never; the signature is the interceptor's.
pub fn inject_metadata(mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
    let mut headers = HeaderMap::new();
    inject(&mut headers);
    let metadata = std::mem::take(request.metadata_mut());
    let mut all = metadata.into_headers();
    all.extend(headers);
    *request.metadata_mut() = MetadataMap::from_headers(all);
    Ok(request)
}
