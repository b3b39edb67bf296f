//! `sleuth serve`: gateway and agent in one process, the executor a supervised child.

use ::gateway::{Config, Gateway, MetricsText};
use accounts::{Gate, Registry};
use runtime::{
    address::{Address, Listener},
    signals,
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use wire::transport;

use super::Context;
use crate::{
    cli::Serve,
    services::{Storage, Supervisor, lasting_agent, models, serve_agent, server_tls, signing_key},
    settings::api_key,
};

pub(super) async fn run(context: Context, flags: Serve) -> anyhow::Result<()> {
    let Context { file, log, telemetry } = context;
    let shutdown = signals::shutdown()?;
    let needs_key = file.needs_key(&flags.access);
    let has_key = needs_key || api_key().is_some();
    let models = models(&file, flags.answering.model_list.as_ref())?;
    let data = file.data_dir(&flags.data);
    let key = signing_key(data.as_ref())?;
    let tls = server_tls(&flags.tls)?;
    let gateway = Config {
        tls: tls.clone(),
        ..file.gateway(&flags.http, &flags.access, key.clone(), MetricsText::new(telemetry.metrics()))?
    };
    let storage =
        Storage::open(file.place(&flags.storage, &flags.data)?, file.retention(&flags.storage)).await?;
    let registry = Registry::new(storage.store(), file.rates(&flags.rates));
    let gate = Gate::new(api_key(), !needs_key, registry.clone());
    let http = listen_http(&file.http_address(&flags.http), has_key).await?;
    let grpc: Address = file.grpc_address(&flags.grpc).parse()?;
    let grpc = grpc.listen(has_key).await?.under(tls);

    let hidden = data.map(|data| data.path);
    let executor = match file.executor_elsewhere(flags.executor) {
        Some(url) => Own::Elsewhere(url),
        None => {
            Own::Child(Supervisor::start(log, file.toolsets(flags.toolsets), key.public(), hidden).await?)
        }
    };
    let default_model = models.default_name().to_owned();
    let config = agent::Config {
        disconnect_grace: file.disconnect_grace(&flags.storage, storage.lasts()),
        ..file.hub(&flags.answering, &flags.links)?
    };
    let agent = lasting_agent(config, models, executor.address(), &storage)?;
    tracing::info!(
        http = %http.local_addr()?, grpc = %grpc.address()?, model = default_model,
        "sleuth is ready"
    );

    let services = Routes::new(agent.service()).add_service(agent.sessions()).add_service(registry.service());
    let gateway = Gateway::new(gateway, transport(services));
    // The agent serves until the gateway has drained: its runs are what the gateway waits for.
    let drained = CancellationToken::new();
    let http = async {
        let served = gateway.serve(http, shutdown.clone()).await;
        drained.cancel();
        served
    };
    let grpc = async {
        let served = serve_agent(&agent, &registry, gate, grpc, drained.clone()).await;
        // It may have failed: nothing serves without it.
        shutdown.cancel();
        served
    };
    let (http, grpc) = tokio::join!(http, grpc);
    executor.stop().await;
    tracing::info!("sleuth has ended");
    http?;
    grpc
}

/// The executors of the server's own cluster.
enum Own {
    /// One that it has started.
    Child(Supervisor),
    /// Those at an address, if it is one.
    Elsewhere(String),
}

impl Own {
    fn address(&self) -> &str {
        match self {
            Self::Child(child) => child.address(),
            Self::Elsewhere(url) => url,
        }
    }

    async fn stop(self) {
        match self {
            Self::Child(child) => child.stop().await,
            Self::Elsewhere(_) => {}
        }
    }
}

/// A TCP listener for HTTP.
pub(super) async fn listen_http(address: &str, has_key: bool) -> anyhow::Result<tokio::net::TcpListener> {
    match address.parse::<Address>()?.listen(has_key).await? {
        Listener::Tcp(listener) => Ok(listener),
        Listener::Tls(..) | Listener::Unix(_) => {
            anyhow::bail!("--http: HTTP is served over TCP: write HOST:PORT")
        }
    }
}
