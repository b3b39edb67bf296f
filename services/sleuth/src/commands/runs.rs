//! `sleuth runs`.

use wire::agent::{CancelRunRequest, GetRunRequest, ListRunsRequest, RunInfo, RunState};

use super::Context;
use crate::{
    cli::{Runs, RunsCommand},
    services::{client, remote},
    terminal::{Table, print_json, print_line, print_table},
};

pub(super) async fn run(context: Context, flags: Runs) -> anyhow::Result<()> {
    let mut client = client(remote(&context.file.agent_url(flags.server.as_deref()))?);
    match flags.command.unwrap_or(RunsCommand::List) {
        RunsCommand::List => {
            let request = ListRunsRequest { caller: None, limit: 0 };
            show(&client.list_runs(request).await?.into_inner().runs, flags.json)
        }
        RunsCommand::Show { id } => {
            let request = GetRunRequest { run_id: id, ..GetRunRequest::default() };
            let run = client.get_run(request).await?.into_inner().run;
            show(run.as_slice(), flags.json)
        }
        RunsCommand::Cancel { id } => {
            let reason = "cancelled from the command line".to_owned();
            let request = CancelRunRequest { caller: None, run_id: id.clone(), reason };
            let before = client.cancel_run(request).await?.into_inner().state_before();
            match before {
                RunState::Running => print_line(&format!("{id} is cancelled")),
                other => print_line(&format!("{id} had ended already: {}", name(other))),
            }
        }
    }
}

fn show(runs: &[RunInfo], json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&runs.iter().map(as_json).collect::<Vec<_>>());
    }
    let mut table = Table::new(["RUN", "STATE", "MODEL", "STEPS", "TOOLS", "TOKENS", "QUESTION"]);
    for run in runs {
        let totals = run.totals.unwrap_or_default();
        table.row([
            run.run_id.clone(),
            name(run.state()).to_owned(),
            run.model.clone(),
            run.steps.to_string(),
            run.tool_calls.to_string(),
            (totals.prompt_tokens + totals.completion_tokens).to_string(),
            run.question.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    print_table(&table)
}

fn as_json(run: &RunInfo) -> serde_json::Value {
    let totals = run.totals.unwrap_or_default();
    serde_json::json!({
        "run_id": run.run_id, "state": name(run.state()), "model": run.model, "question": run.question,
        "started_at": run.started_at.map(|at| at.to_string()), "ended_at": run.ended_at.map(|at| at.to_string()),
        "steps": run.steps, "tool_calls": run.tool_calls, "readers": run.readers,
        "prompt_tokens": totals.prompt_tokens, "completion_tokens": totals.completion_tokens,
        "cost_usd": totals.cost_usd, "last_position": run.last_position,
    })
}

fn name(state: RunState) -> &'static str {
    match state {
        RunState::Unspecified => "unknown",
        RunState::Running => "running",
        RunState::Finished => "finished",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
        RunState::Suspended => "suspended",
    }
}
