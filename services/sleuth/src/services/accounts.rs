//! Accounts and keys, for whoever administers them.

use accounts::{Rates, Registry};
use store::SqliteError;
use wire::{Transport, account::accounts_client::AccountsClient, transport};

use super::{Place, remote};
use crate::{cli::Administer, settings::File};

/// A client of the accounts in a store. A store of one process is reached through the server that has it open.
pub(crate) async fn client(file: &File, at: &Administer) -> anyhow::Result<AccountsClient<Transport>> {
    let server = |url: Option<&str>| Ok(AccountsClient::new(remote(&file.agent_url(url))?));
    if at.server.is_some() {
        return server(at.server.as_deref());
    }
    let place = file.accounts_place(at)?;
    anyhow::ensure!(
        !matches!(place, Place::Memory),
        "accounts in memory are those of a server: name it with --server"
    );
    match place.open().await {
        Ok(store) => Ok(AccountsClient::new(transport(Registry::new(store, Rates::default()).service()))),
        Err(error) if matches!(error.downcast_ref(), Some(SqliteError::InUse(_))) => server(None),
        Err(error) => Err(error),
    }
}
