//! One file per subcommand.

mod accounts;
mod agent;
mod approve;
mod ask;
mod audit;
mod clusters;
mod executor;
mod gateway;
mod keys;
mod models;
mod runs;
mod serve;
mod tools;

use std::{process::ExitCode, time::Duration};

use runtime::telemetry::{self, Telemetry};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Cli, Command, General},
    services::Metrics,
    settings::File,
    terminal::print_error,
};

/// What is logged by a server, unless somebody says otherwise.
const SERVER_LOG: &str = "info";
/// What is logged by a command whose output a person reads.
const CLIENT_LOG: &str = "error";
/// How long what still blocks may take at the end.
const END_TIME: Duration = Duration::from_secs(1);

/// What every subcommand starts from.
struct Context {
    file: File,
    /// How this process logs; an executor that it starts logs in the same way.
    log: telemetry::Config,
    telemetry: Telemetry,
}

impl Context {
    fn new(general: &General, service: &'static str, log: &str) -> anyhow::Result<Self> {
        let file = File::load(general)?;
        let log = file.telemetry(general, service, log);
        let telemetry = Telemetry::start(&log)?;
        Ok(Self { file, log, telemetry })
    }
}

/// Does what was asked for.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return print_error(&error.into()),
    };
    let code = runtime.block_on(dispatch(cli)).unwrap_or_else(|error| print_error(&error));
    // Someone may still be asked at the terminal.
    runtime.shutdown_timeout(END_TIME);
    code
}

async fn dispatch(Cli { general, command }: Cli) -> anyhow::Result<ExitCode> {
    let server = |service| Context::new(&general, service, SERVER_LOG);
    let client = || Context::new(&general, "sleuth", CLIENT_LOG);
    match command {
        Command::Serve(flags) => serve::run(server("sleuth")?, flags).await?,
        Command::Agent(flags) => Box::pin(agent::run(server("sleuth-agent")?, flags)).await?,
        Command::Executor(flags) => Box::pin(executor::run(server("sleuth-executor")?, flags)).await?,
        Command::Gateway(flags) => gateway::run(server("sleuth-gateway")?, flags).await?,
        Command::Ask(flags) => return ask::run(client()?, flags).await,
        Command::Models(flags) => models::run(client()?, flags).await?,
        Command::Clusters(flags) => clusters::run(client()?, flags).await?,
        Command::Tools(flags) => tools::run(client()?, flags).await?,
        Command::Runs(flags) => runs::run(client()?, flags).await?,
        Command::Accounts(flags) => accounts::run(client()?, flags).await?,
        Command::Keys(flags) => keys::run(client()?, flags).await?,
        Command::Audit(flags) => audit::run(client()?, flags).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves, and serves metrics beside it if somebody listens for that.
async fn with_metrics(
    metrics: Option<Metrics>,
    telemetry: &Telemetry,
    shutdown: &CancellationToken,
    serving: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    // It is large, and futures are copied on their way here.
    let serving = Box::pin(serving);
    match metrics {
        None => serving.await,
        Some(metrics) => {
            let metrics = metrics.serve(telemetry.metrics(), shutdown.clone());
            tokio::try_join!(serving, metrics).map(drop)
        }
    }
}
