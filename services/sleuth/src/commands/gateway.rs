//! `sleuth gateway`: HTTP in, an agent behind it.

use ::gateway::{Gateway, MetricsText};
use runtime::signals;

use super::{Context, serve::listen_http};
use crate::{
    cli,
    services::{remote, signing_key},
};

pub(super) async fn run(context: Context, flags: cli::Gateway) -> anyhow::Result<()> {
    let Context { file, telemetry, .. } = context;
    let shutdown = signals::shutdown()?;
    let key = signing_key(file.data_dir(&flags.data).as_ref())?;
    let config = file.gateway(&flags.http, key.clone(), MetricsText::new(telemetry.metrics()))?;
    let listener = listen_http(&file.http_address(&flags.http)).await?;
    let agent = file.agent_url(flags.agent.as_deref());
    let approvals = key.public();
    tracing::info!(
        http = %listener.local_addr()?, agent, %approvals,
        "the gateway is ready; executors trust its approvals if SLEUTH_GRANT_KEYS names its key"
    );
    Gateway::new(config, remote(&agent)?).serve(listener, shutdown).await?;
    Ok(())
}
