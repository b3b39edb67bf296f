//! Health and metrics over HTTP, for services that otherwise speak only gRPC.

use anyhow::Context as _;
use axum::{Router, routing::get};
use runtime::address::{Address, Listener};
use tokio_util::sync::CancellationToken;

/// Serves `/healthz` and `/metrics` at an address until `shutdown`.
pub(crate) async fn serve(
    address: &str,
    metrics: impl Fn() -> String + Clone + Send + Sync + 'static,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    // What is served here is neither secret nor able to change anything, so no key is asked for.
    let Listener::Tcp(listener) = address.parse::<Address>()?.listen(true).await? else {
        anyhow::bail!("metrics are served over TCP: write HOST:PORT");
    };
    tracing::info!(address = %listener.local_addr()?, "metrics are served");
    let router = Router::new()
        .route("/healthz", get(async || r#"{"status":"healthy"}"#))
        .route("/metrics", get(async move || metrics()));
    let end = shutdown.cancelled_owned();
    axum::serve(listener, router).with_graceful_shutdown(end).await.context("the metrics server failed")
}
