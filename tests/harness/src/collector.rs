//! An OTLP collector that keeps what it gets.

use std::{io, net::SocketAddr, time::Duration};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
};
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, transport::Server};

/// A span, as far as tests care.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// `service.name` of the process that made it.
    pub service: String,
    /// Its name.
    pub name: String,
    /// Id of its trace, in hex.
    pub trace: String,
    /// Its id, in hex.
    pub id: String,
    /// Id of its parent, in hex; empty for a root.
    pub parent: String,
    /// Its attributes that are texts.
    pub attributes: Vec<(String, String)>,
}

/// A running collector. Dropping it ends it.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    spans: watch::Receiver<Vec<Span>>,
    _stop: DropGuard,
}

impl Collector {
    /// Starts a collector on a free port.
    ///
    /// # Errors
    /// If there is none.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (keep, spans) = watch::channel(Vec::new());
        let stop = CancellationToken::new();
        let ended = stop.clone().cancelled_owned();
        let server = Server::builder().add_service(TraceServiceServer::new(Keeper(keep)));
        tokio::spawn(server.serve_with_incoming_shutdown(TcpListenerStream::new(listener), ended));
        Ok(Self { address, spans, _stop: stop.drop_guard() })
    }

    /// Its endpoint, for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the spans so far are enough; returns them, enough or not.
    pub async fn until(&self, enough: impl Fn(&[Span]) -> bool, limit: Duration) -> Vec<Span> {
        let mut spans = self.spans.clone();
        let waited = tokio::time::timeout(limit, spans.wait_for(|spans| enough(spans))).await;
        drop(waited);
        self.spans.borrow().clone()
    }
}

struct Keeper(watch::Sender<Vec<Span>>);

#[tonic::async_trait]
impl TraceService for Keeper {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for resource in request.into_inner().resource_spans {
            let about = resource.resource.map(|resource| texts(&resource.attributes)).unwrap_or_default();
            let service = about.into_iter().find(|(key, _)| key == "service.name").map(|(_, name)| name);
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            let spans = spans.map(|span| Span {
                service: service.clone().unwrap_or_default(),
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                attributes: texts(&span.attributes),
            });
            self.0.send_modify(|kept| kept.extend(spans));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn texts(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some((attribute.key.clone(), text.clone())),
        _ => None,
    };
    attributes.iter().filter_map(text).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
