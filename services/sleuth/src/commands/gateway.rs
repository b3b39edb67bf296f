//! `sleuth gateway`: HTTP in, an agent behind it.

use ::gateway::{Config, Gateway, MetricsText};
use runtime::signals;

use super::{Context, serve::listen_http};
use crate::{
    cli,
    services::{remote, server_tls, signing_key},
    settings::api_key,
};

pub(super) async fn run(context: Context, flags: cli::Gateway) -> anyhow::Result<()> {
    let Context { file, telemetry, .. } = context;
    let shutdown = signals::shutdown()?;
    let key = signing_key(file.data_dir(&flags.data).as_ref())?;
    let config = Config {
        tls: server_tls(&flags.tls)?,
        ..file.gateway(&flags.http, &flags.access, key.clone(), MetricsText::new(telemetry.metrics()))?
    };
    let has_key = file.needs_key(&flags.access) || api_key().is_some();
    let listener = listen_http(&file.http_address(&flags.http), has_key).await?;
    let agent = file.agent_url(flags.agent.as_deref());
    let approvals = key.public();
    tracing::info!(
        http = %listener.local_addr()?, agent, %approvals,
        "the gateway is ready; executors trust its approvals if SLEUTH_GRANT_KEYS names its key"
    );
    Gateway::new(config, remote(&agent)?).serve(listener, shutdown).await?;
    Ok(())
}
