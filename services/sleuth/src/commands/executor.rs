//! `sleuth executor`: runs kubectl and bash.

use std::path::Path;

use ::executor::{Executor, Uplink};
use anyhow::Context as _;
use runtime::{
    address::{Address, Listener},
    signals,
};
use rustix::{
    process::{Pid, Signal, getppid, set_parent_process_death_signal},
    system::uname,
};

use super::{Context, with_metrics};
use crate::{
    cli,
    services::{Metrics, Readers, serve_executor, server_tls, stranger},
    settings::{api_key, variable},
};

pub(super) async fn run(context: Context, flags: cli::Executor) -> anyhow::Result<()> {
    let Context { file, telemetry, .. } = context;
    let shutdown = signals::shutdown()?;
    if let Some(parent) = flags.parent {
        end_with(parent)?;
    }
    let listener = match (&flags.listen, flags.connect.as_slice()) {
        (None, [_, ..]) => None,
        (listen, _) => {
            let address: Address = file.listen_address(listen.as_deref()).parse()?;
            // A certificate says who comes as well as a key does.
            let asks = api_key().is_some() || flags.tls.tls_client_ca.is_some();
            Some(address.listen(asks).await?.under(server_tls(&flags.tls)?))
        }
    };
    let readers = Readers::with_key();
    let metrics =
        Metrics::listen(file.metrics_address(flags.metrics.as_deref()), readers, &flags.tls).await?;
    let at = metrics.as_ref().map(Metrics::address).transpose()?;
    let mut config = ::executor::Config::from_env(&variable)?;
    config.toolsets = file.toolsets(flags.toolsets.clone());
    config.cluster.clone_from(&flags.cluster);
    let folder = config.state.clone();
    let executor = Executor::build(config).await?;
    let uplink = uplink(&flags, &folder).await?;
    let address = listener.as_ref().map(Listener::address).transpose()?.map(|address| address.to_string());
    tracing::info!(address, metrics = at, sandbox = %executor.sandbox(), "the executor is ready");
    let listening = async {
        match listener {
            Some(listener) => serve_executor(&executor, listener, shutdown.clone()).await,
            None => Ok(()),
        }
    };
    let linked = async {
        if let Some(uplink) = &uplink {
            uplink.serve(&executor, &shutdown).await;
        }
        Ok(())
    };
    let ended = async {
        shutdown.cancelled().await;
        executor.shutdown().await;
        Ok(())
    };
    let all = Box::pin(async { tokio::try_join!(listening, linked, ended).map(drop) });
    with_metrics(metrics, &telemetry, &shutdown, all).await
}

/// The way to the agents that this executor dials, if it does; joins them if it must.
async fn uplink(flags: &cli::Executor, folder: &Path) -> anyhow::Result<Option<Uplink>> {
    let agents: Vec<_> = flags.connect.iter().map(|url| stranger(url)).collect::<anyhow::Result<_>>()?;
    if agents.is_empty() {
        return Ok(None);
    }
    let host = || uname().nodename().to_string_lossy().into_owned();
    let name = flags.name.clone().unwrap_or_else(host);
    let (cluster, token) = (flags.cluster.clone(), flags.join_token.clone());
    Ok(Some(Uplink::open(agents, cluster, name, folder, token).await?))
}

/// Has the kernel end this process in its own order when its parent is gone.
fn end_with(parent: u32) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM)).context("cannot be tied to the parent process")?;
    let now = getppid().map(Pid::as_raw_nonzero).map(std::num::NonZeroI32::get);
    anyhow::ensure!(now == i32::try_from(parent).ok(), "the parent process is gone already");
    Ok(())
}
