//! Health and metrics over HTTP, for services that otherwise speak only gRPC.

use std::{net::SocketAddr, pin::Pin, sync::Arc};

use accounts::{Denied, Registry};
use anyhow::Context as _;
use axum::{
    Router,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::get,
    serve::Listener as Accepts,
};
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, StatusCode};
use runtime::{
    address::{Address, Listener},
    auth::{ApiKey, is_authorized, presented},
    grpc::secured,
    scope::Scope,
    tls::Secured,
    token::Token,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::server_tls;
use crate::{cli::Tls, settings::api_key};

/// Who may read metrics.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    key: Option<ApiKey>,
    /// Keys of accounts, and whether one is needed, where there are accounts.
    accounts: Option<(Registry, bool)>,
}

impl Readers {
    /// Whoever has the server's own key; everybody if there is none.
    pub(crate) fn with_key() -> Self {
        Self { key: api_key(), accounts: None }
    }

    /// Also whoever has a key of an account that is for this.
    pub(crate) fn of_accounts(registry: &Registry, needs_key: bool) -> Self {
        Self { accounts: Some((registry.clone(), needs_key)), ..Self::with_key() }
    }

    /// Whether everybody is asked who they are.
    fn are_asked(&self) -> bool {
        self.key.is_some() || self.accounts.as_ref().is_some_and(|(_, needs_key)| *needs_key)
    }

    async fn admit(&self, headers: &HeaderMap) -> Result<(), StatusCode> {
        if self.key.as_ref().is_some_and(|key| is_authorized(headers, key)) {
            return Ok(());
        }
        match (&self.accounts, presented(headers).find_map(Token::read)) {
            (Some((registry, _)), Some(token)) => match registry.admit(token.id(), &token.digest()).await {
                Ok(known) if known.scopes.allow(Scope::Metrics) => Ok(()),
                Ok(_) | Err(Denied::Scope(_) | Denied::NotForThis) => Err(StatusCode::FORBIDDEN),
                Err(Denied::Unknown) => Err(StatusCode::UNAUTHORIZED),
                Err(Denied::TooMany(_)) => Err(StatusCode::TOO_MANY_REQUESTS),
                Err(Denied::Unavailable(_)) => Err(StatusCode::SERVICE_UNAVAILABLE),
            },
            _ if self.are_asked() => Err(StatusCode::UNAUTHORIZED),
            _ => Ok(()),
        }
    }
}

/// Where metrics are served, and to whom.
pub(crate) struct Metrics {
    listener: Listener,
    readers: Readers,
}

impl Metrics {
    /// Listens at an address, if there is one. As on any other port, nobody listens beyond loopback who lets everybody
    /// in.
    pub(crate) async fn listen(
        address: Option<String>,
        readers: Readers,
        tls: &Tls,
    ) -> anyhow::Result<Option<Self>> {
        let Some(address) = address else { return Ok(None) };
        let asks = readers.are_asked() || tls.tls_client_ca.is_some();
        let listener = address.parse::<Address>()?.listen(asks).await.context("--metrics")?;
        Ok(Some(Self { listener: listener.under(server_tls(tls)?), readers }))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> anyhow::Result<String> {
        Ok(self.listener.address()?.to_string())
    }

    /// Serves `/healthz`, to everybody, and `/metrics` until `shutdown`.
    pub(crate) async fn serve(
        self,
        text: impl Fn() -> String + Send + Sync + 'static,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        tracing::info!(address = self.address()?, "metrics are served");
        let router = Router::new()
            .route("/healthz", get(async || r#"{"status":"healthy"}"#))
            .route("/metrics", get(metrics))
            .with_state(Arc::new((self.readers, Box::new(text) as Text)));
        let end = shutdown.cancelled_owned();
        let served = match self.listener {
            Listener::Tcp(listener) => axum::serve(listener, router).with_graceful_shutdown(end).await,
            Listener::Tls(listener, tls) => {
                let incoming = Incoming::new(listener, tls)?;
                axum::serve(incoming, router).with_graceful_shutdown(end).await
            }
            Listener::Unix(listener) => axum::serve(listener, router).with_graceful_shutdown(end).await,
        };
        served.context("the metrics server failed")
    }
}

type Text = Box<dyn Fn() -> String + Send + Sync>;

async fn metrics(State(shared): State<Arc<(Readers, Text)>>, headers: HeaderMap) -> Response {
    let (readers, text) = &*shared;
    match readers.admit(&headers).await {
        Ok(()) => text().into_response(),
        Err(status) => status.into_response(),
    }
}

/// Connections whose handshake is done.
struct Incoming {
    connections: Pin<Box<dyn Stream<Item = Secured> + Send>>,
    address: SocketAddr,
}

impl Incoming {
    fn new(listener: TcpListener, tls: runtime::tls::Server) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let connections = secured(listener, tls).filter_map(async |accepted| accepted.ok());
        Ok(Self { connections: Box::pin(connections), address })
    }
}

impl Accepts for Incoming {
    type Io = Secured;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Secured, SocketAddr) {
        match self.connections.next().await {
            Some(connection) => (connection, self.address),
            // A listener has no end.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.address)
    }
}
