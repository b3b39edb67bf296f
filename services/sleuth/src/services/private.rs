//! Services of a command's own, for as long as it runs.

use std::sync::Arc;

use grants::SigningKey;
use runtime::telemetry;
use store::Memory;
use wire::transport;

use super::{Client, Supervisor, agent, client, models, remote};
use crate::{cli, settings::File};

/// An agent and its executor, seen by nobody else.
#[derive(Debug)]
pub(crate) struct Private {
    agent: agent::Agent,
    executor: Supervisor,
    /// Signs what the person at the terminal approves.
    key: SigningKey,
}

impl Private {
    /// Starts them.
    pub(crate) async fn start(
        file: &File,
        log: telemetry::Config,
        flags: &cli::Client,
    ) -> anyhow::Result<Self> {
        let models = models(file, flags.answering.model_list.as_ref())?;
        let config = agent::Config { drain_time: std::time::Duration::ZERO, ..file.agent(&flags.answering)? };
        let key = SigningKey::generate()?;
        let executor = Supervisor::start(log, file.toolsets(None), key.public(), None).await?;
        let agent = agent(config, models, executor.address(), Arc::new(Memory::default()))?;
        Ok(Self { agent, executor, key })
    }

    /// Signs what the person at the terminal approves.
    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Ends them.
    pub(crate) async fn stop(self) {
        self.agent.shutdown().await;
        self.executor.stop().await;
    }
}

/// A client of the server that was named, or of private services if none was.
pub(crate) async fn connect(
    file: &File,
    log: telemetry::Config,
    flags: &cli::Client,
) -> anyhow::Result<(Client, Option<Private>)> {
    match &flags.server {
        Some(server) => Ok((client(remote(server)?), None)),
        None => {
            let private = Private::start(file, log, flags).await?;
            Ok((client(transport(private.agent.service())), Some(private)))
        }
    }
}
