//! `sleuth accounts`.

use wire::account::{Account, CreateAccountRequest, ListAccountsRequest, UpdateAccountRequest};

use super::Context;
use crate::{
    cli::{Accounts, AccountsCommand, Budget},
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
        AccountsCommand::Create { id, name, default_model, budget } => {
            let Budget { daily_tokens, daily_cost: daily_cost_usd } = budget;
            let request = CreateAccountRequest { id, name, default_model, daily_tokens, daily_cost_usd };
            let account = client.create_account(request).await?.into_inner().account;
            return show(account.as_slice(), flags.at.json);
        }
        AccountsCommand::Update { id, name, default_model, budget } => {
            let Budget { daily_tokens, daily_cost: daily_cost_usd } = budget;
            UpdateAccountRequest { id, name, default_model, disabled: None, daily_tokens, daily_cost_usd }
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
    let mut table = Table::new(["ACCOUNT", "NAME", "MODEL", "TOKENS TODAY", "COST TODAY", ""]);
    for account in accounts {
        let off = if account.disabled_at.is_some() { "disabled" } else { "" };
        let tokens = of(&account.tokens_today.to_string(), account.daily_tokens.map(|most| most.to_string()));
        let cost = of(&dollars(account.cost_usd_today), account.daily_cost_usd.map(dollars));
        let (id, name, model) = (account.id.clone(), account.name.clone(), account.default_model.clone());
        table.row([id, name, model, tokens, cost, off.to_owned()]);
    }
    print_table(&table)
}

/// What was spent, of what may be.
fn of(spent: &str, most: Option<String>) -> String {
    most.map_or_else(|| spent.to_owned(), |most| format!("{spent} of {most}"))
}

fn dollars(amount: f64) -> String {
    format!("${amount:.2}")
}

fn as_json(account: &Account) -> serde_json::Value {
    serde_json::json!({
        "id": account.id, "name": account.name, "default_model": account.default_model,
        "created_at": account.created_at.map(|at| at.to_string()),
        "disabled_at": account.disabled_at.map(|at| at.to_string()),
        "daily_tokens": account.daily_tokens, "daily_cost_usd": account.daily_cost_usd,
        "tokens_today": account.tokens_today, "cost_usd_today": account.cost_usd_today,
    })
}
