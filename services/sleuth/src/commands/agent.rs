//! `sleuth agent`: gRPC in, models and executors out.

use accounts::{Gate, Registry};
use runtime::{address::Address, signals};

use super::{Context, with_metrics};
use crate::{
    cli::Agent,
    services::{Metrics, Readers, Storage, lasting_agent, models, serve_agent, server_tls},
    settings::api_key,
};

pub(super) async fn run(context: Context, flags: Agent) -> anyhow::Result<()> {
    let Context { file, telemetry, .. } = context;
    let shutdown = signals::shutdown()?;
    let models = models(&file, flags.answering.model_list.as_ref())?;
    let needs_key = file.needs_key(&flags.access);
    let address: Address = file.grpc_address(&flags.grpc).parse()?;
    let listener = address.listen(needs_key || api_key().is_some()).await?;
    let listener = listener.under(server_tls(&flags.tls)?);
    let executor = file.executor_url(flags.executor.as_deref());
    let storage =
        Storage::open(file.place(&flags.storage, &flags.data)?, file.retention(&flags.storage)).await?;
    let config = agent::Config {
        executor_labels: file.executor_selector(flags.executor_selector),
        disconnect_grace: file.disconnect_grace(&flags.storage, storage.lasts()),
        ..file.hub(&flags.answering, &flags.links)?
    };
    let agent = lasting_agent(config, models, &executor, &storage)?;
    let registry = Registry::new(storage.store(), file.rates(&flags.rates));
    let gate = Gate::new(api_key(), !needs_key, registry.clone());
    let readers = Readers::of_accounts(&registry, needs_key);
    let metrics =
        Metrics::listen(file.metrics_address(flags.metrics.as_deref()), readers, &flags.tls).await?;
    let at = metrics.as_ref().map(Metrics::address).transpose()?;
    tracing::info!(grpc = %listener.address()?, executor, metrics = at, "the agent is ready");
    with_metrics(
        metrics,
        &telemetry,
        &shutdown,
        serve_agent(&agent, &registry, gate, listener, shutdown.clone()),
    )
    .await
}
