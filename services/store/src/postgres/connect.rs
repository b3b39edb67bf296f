//! Connections: how they are made, and what holds for each.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::{Config, config::SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::OpenError;

/// Connections of a process, beside the one that listens.
const CONNECTIONS: usize = 16;
/// How long a connection may take to be made, or to be free.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the network may be silent about what was sent.
const SILENCE: Duration = Duration::from_secs(10);
/// What holds for each connection: durability does not depend on how the server is set up.
const SETTINGS: &str = "SET synchronous_commit = on; SET statement_timeout = '15s'; SET lock_timeout = '10s'";

/// How to reach a database.
#[derive(Clone)]
pub(super) struct Address {
    pub config: Config,
    pub tls: MakeRustlsConnect,
}

impl Address {
    /// Reads a URL. With `sslmode=require` the server must prove who it is; without it nothing is encrypted.
    pub(super) fn parse(url: &str, password: Option<&str>) -> Result<Self, OpenError> {
        // What is required here is what others call so.
        let url = url.replace("sslmode=verify-full", "sslmode=require");
        let mut config: Config = url.parse().map_err(|_| OpenError::Url)?;
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        if config.get_ssl_mode() != SslMode::Require {
            config.ssl_mode(SslMode::Disable);
        }
        if config.get_application_name().is_none() {
            config.application_name("sleuth");
        }
        config.connect_timeout(CONNECT).tcp_user_timeout(SILENCE).keepalives_idle(SILENCE);
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let tls = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        Ok(Self { config, tls: MakeRustlsConnect::new(tls) })
    }

    pub(super) fn pool(&self) -> Result<Pool, OpenError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.clone(), recycling);
        let set_up = Hook::async_fn(|client, _| {
            Box::pin(async move { client.batch_execute(SETTINGS).await.map_err(HookError::Backend) })
        });
        let timeouts = Timeouts { wait: Some(CONNECT), create: Some(CONNECT), recycle: Some(CONNECT) };
        Ok(Pool::builder(manager)
            .max_size(CONNECTIONS)
            .timeouts(timeouts)
            .post_create(set_up)
            .runtime(Runtime::Tokio1)
            .build()?)
    }
}
