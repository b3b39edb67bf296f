//! `sleuth gateway`: HTTP in, an agent behind it.

use ::gateway::{Gateway, MetricsText};
use runtime::signals;

use super::{Context, serve::listen_http};
use crate::{cli, services::remote};

pub(super) async fn run(context: Context, flags: cli::Gateway) -> anyhow::Result<()> {
    let Context { file, telemetry, .. } = context;
    let shutdown = signals::shutdown()?;
    let config = file.gateway(&flags.http, MetricsText::new(telemetry.metrics()))?;
    let listener = listen_http(&file.http_address(&flags.http)).await?;
    let agent = file.agent_url(flags.agent.as_deref());
    tracing::info!(http = %listener.local_addr()?, agent, "the gateway is ready");
    Gateway::new(config, remote(&agent)?).serve(listener, shutdown).await?;
    Ok(())
}
