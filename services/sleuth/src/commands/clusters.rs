//! `sleuth clusters`.

use wire::agent::ListClustersRequest;

use super::Context;
use crate::{
    cli::Server,
    services::{client, remote},
    terminal::{Table, print_json, print_table},
};

pub(super) async fn run(context: Context, flags: Server) -> anyhow::Result<()> {
    let server = context.file.agent_url(flags.server.as_deref());
    let answer = client(remote(&server)?).list_clusters(ListClustersRequest { caller: None }).await?;
    let clusters = answer.into_inner().clusters;
    if flags.json {
        let shown = clusters.iter().map(|cluster| {
            let executors: Vec<_> = cluster
                .executors
                .iter()
                .map(|one| {
                    serde_json::json!({
                        "name": one.name, "instance": one.instance, "calls": one.calls, "agent": one.agent,
                    })
                })
                .collect();
            serde_json::json!({ "name": cluster.name, "executors": executors })
        });
        return print_json(&shown.collect::<Vec<_>>());
    }
    let mut table = Table::new(["CLUSTER", "EXECUTOR", "CALLS", "THROUGH"]);
    for cluster in clusters {
        for executor in cluster.executors {
            let through = if executor.agent.is_empty() { "-".to_owned() } else { executor.agent };
            table.row([cluster.name.clone(), executor.name, executor.calls.to_string(), through]);
        }
    }
    print_table(&table)
}
