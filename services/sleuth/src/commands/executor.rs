//! `sleuth executor`: runs kubectl and bash.

use ::executor::Executor;
use anyhow::Context as _;
use runtime::{address::Address, signals};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::{Context, with_metrics};
use crate::{
    cli,
    services::{serve_executor, server_tls},
    settings::{api_key, variable},
};

pub(super) async fn run(context: Context, flags: cli::Executor) -> anyhow::Result<()> {
    let Context { file, telemetry, .. } = context;
    let shutdown = signals::shutdown()?;
    if let Some(parent) = flags.parent {
        end_with(parent)?;
    }
    let listener =
        file.listen_address(flags.listen.as_deref()).parse::<Address>()?.listen(api_key().is_some()).await?;
    let listener = listener.under(server_tls(&flags.tls)?);
    let mut config = ::executor::Config::from_env(&variable)?;
    config.toolsets = file.toolsets(flags.toolsets);
    let executor = Executor::build(config).await?;
    tracing::info!(address = %listener.address()?, sandbox = %executor.sandbox(), "the executor is ready");
    let metrics = file.metrics_address(flags.metrics.as_deref());
    let serving = serve_executor(&executor, listener, shutdown.clone());
    let ended = async {
        shutdown.cancelled().await;
        executor.shutdown().await;
        Ok(())
    };
    with_metrics(metrics, &telemetry, &shutdown, async { tokio::try_join!(serving, ended).map(drop) }).await
}

/// Has the kernel end this process in its own order when its parent is gone.
fn end_with(parent: u32) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM)).context("cannot be tied to the parent process")?;
    let now = getppid().map(Pid::as_raw_nonzero).map(std::num::NonZeroI32::get);
    anyhow::ensure!(now == i32::try_from(parent).ok(), "the parent process is gone already");
    Ok(())
}
