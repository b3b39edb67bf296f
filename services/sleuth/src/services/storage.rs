//! The store of an agent: where it is, and what it forgets.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use secrecy::{ExposeSecret as _, SecretString};
use store::{Memory, Postgres, Retention, Sqlite, Store};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use crate::settings::variable;

/// Time between two looks at what need not be kept.
const SWEEP: Duration = Duration::from_secs(600);

/// The variable with the database's password, where its URL has none.
pub(super) const PASSWORD: &str = "SLEUTH_STORE_PASSWORD";

/// Where runs are kept.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In this process.
    Memory,
    /// In a folder.
    Sqlite(PathBuf),
    /// In a database, at a URL that may have a password in it.
    Postgres(SecretString),
}

impl Place {
    /// Reads what `--store` says.
    pub(crate) fn parse(url: &str, data_dir: Option<PathBuf>) -> anyhow::Result<Self> {
        match url.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", "")) => {
                let data_dir = data_dir.context("--data-dir is needed: there is no home directory")?;
                Ok(Self::Sqlite(data_dir.join("store")))
            }
            Some(("sqlite", folder)) => Ok(Self::Sqlite(folder.into())),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(url.into())),
            // It is not repeated: it could have a password in it.
            _ => bail!("--store must be sqlite:, sqlite:FOLDER, postgres://… or memory:"),
        }
    }

    /// The store there.
    pub(crate) async fn open(self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(match self {
            Self::Memory => Arc::new(Memory::default()),
            Self::Sqlite(folder) => Arc::new(Sqlite::open(&folder)?),
            Self::Postgres(url) => {
                let password = variable(PASSWORD);
                Arc::new(Postgres::connect(url.expose_secret(), password.as_deref()).await?)
            }
        })
    }
}

/// An open store, which is kept tidy for as long as this lives.
#[derive(Debug)]
pub(crate) struct Storage {
    store: Arc<dyn Store>,
    lasts: bool,
    _sweeping: AbortOnDropHandle<()>,
}

impl Storage {
    /// Opens the store at a place.
    pub(crate) async fn open(place: Place, keep: Retention) -> anyhow::Result<Self> {
        let lasts = !matches!(place, Place::Memory);
        let store = place.open().await?;
        let sweeping = tokio::spawn(sweep(Arc::clone(&store), keep));
        Ok(Self { store, lasts, _sweeping: AbortOnDropHandle::new(sweeping) })
    }

    /// The store.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Whether it outlives this process.
    pub(crate) fn lasts(&self) -> bool {
        self.lasts
    }
}

/// Deletes what need not be kept, again and again.
async fn sweep(store: Arc<dyn Store>, keep: Retention) {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        loop {
            match store.sweep(keep).await {
                Ok(0) => break,
                Ok(gone) => tracing::info!(gone, "logs that need not be kept are deleted"),
                Err(error) => {
                    tracing::warn!(%error, "logs that need not be kept cannot be deleted");
                    break;
                }
            }
        }
    }
}
