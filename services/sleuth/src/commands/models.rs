//! `sleuth models`.

use wire::agent::ListModelsRequest;

use super::Context;
use crate::{
    cli::Client,
    services::connect,
    terminal::{Table, print_json, print_table},
};

pub(super) async fn run(context: Context, flags: Client) -> anyhow::Result<()> {
    let (mut client, private) = connect(&context.file, context.log, &flags).await?;
    let answer = client.list_models(ListModelsRequest { caller: None }).await;
    if let Some(private) = private {
        private.stop().await;
    }
    let models = answer?.into_inner().models;
    if flags.json {
        let models: Vec<_> = models
            .iter()
            .map(|model| {
                serde_json::json!({
                    "name": model.name, "provider": model.provider, "id": model.id,
                    "context_window": model.context_window, "max_output_tokens": model.max_output_tokens,
                    "default": model.is_default,
                })
            })
            .collect();
        return print_json(&models);
    }
    let mut table = Table::new(["NAME", "PROVIDER", "MODEL", "WINDOW", ""]);
    for model in models {
        let default = if model.is_default { "default" } else { "" };
        table.row([
            model.name,
            model.provider,
            model.id,
            model.context_window.to_string(),
            default.to_owned(),
        ]);
    }
    print_table(&table)
}
