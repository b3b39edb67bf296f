//! `sleuth accounts`.

use wire::account::{Account, CreateAccountRequest, ListAccountsRequest, UpdateAccountRequest};

use super::Context;
use crate::{
    cli::{Accounts, AccountsCommand},
    services,
    terminal::{Table, print_json, print_table},
};

pub(super) async fn run(context: Context, flags: Accounts) -> anyhow::Result<()> {
    let mut client = services::accounts(&context.file, &flags.at).await?;
    let update = match flags.command.unwrap_or(AccountsCommand::List) {
        AccountsCommand::List => {
            let accounts = client.list_accounts(ListAccountsRequest {}).await?.into_inner().accounts;
            return show(&accounts, flags.at.json);
        }
        AccountsCommand::Create { id, name, default_model } => {
            let request = CreateAccountRequest { id, name, default_model };
            let account = client.create_account(request).await?.into_inner().account;
            return show(account.as_slice(), flags.at.json);
        }
        AccountsCommand::Update { id, name, default_model } => {
            UpdateAccountRequest { id, name, default_model, disabled: None }
        }
        AccountsCommand::Disable { id } => switch(id, true),
        AccountsCommand::Enable { id } => switch(id, false),
    };
    let account = client.update_account(update).await?.into_inner().account;
    show(account.as_slice(), flags.at.json)
}

fn switch(id: String, off: bool) -> UpdateAccountRequest {
    UpdateAccountRequest { id, disabled: Some(off), ..UpdateAccountRequest::default() }
}

fn show(accounts: &[Account], json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&accounts.iter().map(as_json).collect::<Vec<_>>());
    }
    let mut table = Table::new(["ACCOUNT", "NAME", "MODEL", ""]);
    for account in accounts {
        let off = if account.disabled_at.is_some() { "disabled" } else { "" };
        table.row([account.id.clone(), account.name.clone(), account.default_model.clone(), off.to_owned()]);
    }
    print_table(&table)
}

fn as_json(account: &Account) -> serde_json::Value {
    serde_json::json!({
        "id": account.id, "name": account.name, "default_model": account.default_model,
        "created_at": account.created_at.map(|at| at.to_string()),
        "disabled_at": account.disabled_at.map(|at| at.to_string()),
    })
}
