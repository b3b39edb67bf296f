//! gRPC servers and clients: key, health, reflection.

use std::time::Duration;

use accounts::{Gate, Registry};
use anyhow::Context as _;
use executor::Executor;
use http::{HeaderValue, header::AUTHORIZATION};
use runtime::{
    address::{self, Listener},
    auth::ApiKey,
    grpc::{require, serve},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{
    body::Body,
    service::interceptor::InterceptedService,
    transport::{Channel, Server},
};
use tonic_reflection::pb::{
    v1::server_reflection_server as v1, v1alpha::server_reflection_server as v1alpha,
};
use tower::ServiceExt as _;
use wire::{
    Transport,
    agent::{agent_client::AgentClient, agent_server::AgentServer},
    executor::tool_executor_server::ToolExecutorServer,
    transport,
};

use crate::settings::api_key;

/// Time for the last events of runs that have ended to reach their readers.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A client of an agent, here or elsewhere.
pub(crate) type Client = AgentClient<Transport>;

/// A client of an agent behind a transport.
pub(crate) fn client(agent: Transport) -> Client {
    AgentClient::new(agent).max_decoding_message_size(usize::MAX)
}

/// A way to an agent at an address, for those who have a key of their own.
pub(crate) fn stranger(server: &str) -> anyhow::Result<Transport> {
    Ok(transport(address::channel_under(server, super::tls::client_tls)?))
}

/// A way to an agent at an address, with the key of the environment.
pub(crate) fn remote(server: &str) -> anyhow::Result<Transport> {
    Ok(with_key(address::channel_under(server, super::tls::client_tls)?))
}

/// A channel that presents the key of the environment, if there is one.
pub(super) fn with_key(channel: Channel) -> Transport {
    let header = api_key().as_ref().and_then(header);
    transport(channel.map_request(move |mut request: http::Request<Body>| {
        if let Some(header) = &header {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
        }
        request
    }))
}

fn header(key: &ApiKey) -> Option<HeaderValue> {
    let mut value: HeaderValue = format!("Bearer {}", key.expose()).parse().ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Serves an agent to whom the gate lets in, until `shutdown`; then its runs get the time to end.
pub(crate) async fn serve_agent(
    agent: &agent::Agent,
    registry: &Registry,
    gate: Gate,
    listener: Listener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let (health, healthy) = tonic_health::server::health_reporter();
    health.set_serving::<AgentServer<agent::Service>>().await;
    let (reflection, older_reflection) = reflection()?;
    let router = server()
        .layer(gate)
        .add_service(agent.service())
        .add_service(agent.sessions())
        .add_service(registry.service())
        .add_service(super::clusters::link(agent, registry))
        .add_service(agent.relay())
        .add_service(reflection)
        .add_service(older_reflection)
        .add_service(healthy);
    let drained = CancellationToken::new();
    let served = async {
        let mut serving = std::pin::pin!(serve(router, listener, shutdown.clone()));
        tokio::select! {
            served = &mut serving => served,
            // Readers of what goes on elsewhere would never leave.
            () = drained.cancelled() => timeout(LAST_WORDS, serving).await.unwrap_or(Ok(())),
        }
    };
    let ended = async {
        shutdown.cancelled().await;
        agent.shutdown().await;
        drained.cancel();
        Ok(())
    };
    tokio::try_join!(served, ended).context("the gRPC server failed")?;
    Ok(())
}

/// Serves an executor until `shutdown`, to callers with the key. Health needs none.
pub(crate) async fn serve_executor(
    executor: &Executor,
    listener: Listener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let (health, healthy) = tonic_health::server::health_reporter();
    health.set_serving::<ToolExecutorServer<executor::Service>>().await;
    let (reflection, older_reflection) = reflection()?;
    let router = server()
        .add_service(InterceptedService::new(executor.service(), require(api_key())))
        .add_service(InterceptedService::new(reflection, require(api_key())))
        .add_service(InterceptedService::new(older_reflection, require(api_key())))
        .add_service(healthy);
    serve(router, listener, shutdown).await.context("the gRPC server failed")
}

fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(5)))
        // What executors of clusters send comes in one stream each.
        .initial_stream_window_size(16 << 20)
        .initial_connection_window_size(16 << 20)
}

/// The contracts, for clients that have no files: `v1`, and `v1alpha` for older ones.
fn reflection() -> anyhow::Result<(
    v1::ServerReflectionServer<impl v1::ServerReflection>,
    v1alpha::ServerReflectionServer<impl v1alpha::ServerReflection>,
)> {
    let contracts = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(wire::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let unusable = "the descriptors of the contracts cannot be served";
    Ok((contracts().build_v1().context(unusable)?, contracts().build_v1alpha().context(unusable)?))
}
