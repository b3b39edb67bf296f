//! `sleuth tools`.

use wire::agent::ListToolsRequest;

use super::Context;
use crate::{
    cli::Client,
    services::connect,
    terminal::{Table, print_json, print_table},
};

pub(super) async fn run(context: Context, flags: Client) -> anyhow::Result<()> {
    let (mut client, private) = connect(&context.file, context.log, &flags).await?;
    let answer = client.list_tools(ListToolsRequest { caller: None }).await;
    if let Some(private) = private {
        private.stop().await;
    }
    let tools = answer?.into_inner().tools;
    if flags.json {
        let tools: Vec<_> = tools
            .iter()
            .map(|tool| {
                let parameters: serde_json::Value =
                    serde_json::from_str(&tool.parameters_json).unwrap_or_default();
                serde_json::json!({
                    "name": tool.name, "toolset": tool.toolset, "description": tool.description,
                    "parameters": parameters,
                })
            })
            .collect();
        return print_json(&tools);
    }
    let mut table = Table::new(["NAME", "TOOLSET", "DESCRIPTION"]);
    for tool in tools {
        let first_line = tool.description.lines().next().unwrap_or_default().to_owned();
        table.row([tool.name, tool.toolset, first_line]);
    }
    print_table(&table)
}
