//! `sleuth ask`: live progress on standard error, the answer on standard output.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use domain::{Event, EventKind};
use runtime::signals;
use tonic::{Status, Streaming};
use wire::agent::{self, ChatRequest, File};

use super::Context;
use crate::{
    cli::Ask,
    services::connect,
    terminal::{Progress, print_answer, print_json},
};

/// The exit code of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// The parts of the prompt that ask for a written plan.
const PLANNING: [&str; 2] = ["todowrite_instructions", "todowrite_reminder"];

pub(super) async fn run(context: Context, flags: Ask) -> anyhow::Result<ExitCode> {
    let interrupt = signals::shutdown()?;
    let files = flags.files.iter().map(read).collect::<Result<_, _>>()?;
    let without = if flags.fast_mode { &PLANNING[..] } else { &[] };
    let (mut client, private) = connect(&context.file, context.log, &flags.client).await?;
    let request = ChatRequest {
        question: flags.question,
        model: flags.model.unwrap_or_default(),
        files,
        behavior_controls: without.iter().map(|section| ((*section).to_owned(), false)).collect(),
        ..ChatRequest::default()
    };
    let asked = async {
        let events = client.chat(request).await?.into_inner();
        follow(events, flags.client.json).await
    };
    let code = tokio::select! {
        code = asked => code,
        // Leaving the stream cancels the run.
        () = interrupt.cancelled() => Ok(ExitCode::from(INTERRUPTED)),
    };
    if let Some(private) = private {
        private.stop().await;
    }
    code
}

fn read(path: &PathBuf) -> anyhow::Result<File> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(File { name: path.display().to_string(), text })
}

async fn follow(mut events: Streaming<agent::Event>, json: bool) -> anyhow::Result<ExitCode> {
    let mut progress = Progress::new(!json);
    let mut report = Report::default();
    while let Some(event) = events.message().await? {
        let event: Event = event.try_into()?;
        progress.show(&event.kind);
        report.add(&event);
        match event.kind {
            EventKind::RunFinished { answer, reason } => {
                progress.end();
                if json {
                    print_json(&report.finished(&answer, &reason))?;
                } else {
                    print_answer(&answer)?;
                }
                return Ok(ExitCode::SUCCESS);
            }
            EventKind::RunFailed { message, .. } => anyhow::bail!(message),
            // This client offers no tools.
            EventKind::RunSuspended => anyhow::bail!("the run waits for another client"),
            EventKind::RunCancelled { reason } => anyhow::bail!("the run was cancelled: {reason}"),
            EventKind::RunStarted(_)
            | EventKind::ModelCalled(_)
            | EventKind::AttemptAbandoned { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::UsageReported(_)
            | EventKind::AssistantMessage(_)
            | EventKind::ToolStarted { .. }
            | EventKind::ToolOutput { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::ClientToolRequested { .. }
            | EventKind::CallResolved { .. }
            | EventKind::CompactionStarted(_)
            | EventKind::CompactionDone(_)
            | EventKind::CompactionFailed { .. }
            | EventKind::Notice { .. } => {}
        }
    }
    Err(Status::unavailable("the stream ended without an answer").into())
}

/// What `--json` prints at the end.
#[derive(Default)]
struct Report {
    run_id: String,
    model: String,
    tool_calls: Vec<serde_json::Value>,
    usage: domain::Totals,
}

impl Report {
    fn add(&mut self, event: &Event) {
        if let EventKind::RunStarted(started) = &event.kind {
            self.run_id = event.run.as_str().to_owned();
            self.model.clone_from(&started.model);
        }
        if let EventKind::UsageReported(report) = &event.kind {
            self.usage = report.totals;
        }
        if let EventKind::ToolStarted { call, description, .. } = &event.kind {
            self.tool_calls.push(serde_json::json!({
                "id": call.id.as_str(), "tool": call.name, "description": description,
            }));
        }
        if let EventKind::ToolFinished { call, result } = &event.kind
            && let Some(entry) = self.tool_calls.iter_mut().find(|entry| entry["id"] == call.as_str())
        {
            entry["error"] = result.error.clone().into();
            entry["return_code"] = result.return_code.into();
        }
    }

    fn finished(&self, answer: &str, reason: &str) -> serde_json::Value {
        serde_json::json!({
            "run_id": self.run_id, "model": self.model, "answer": answer, "finish_reason": reason,
            "tool_calls": self.tool_calls,
            "usage": {
                "prompt_tokens": self.usage.prompt, "completion_tokens": self.usage.completion,
                "cost_usd": self.usage.cost_usd,
            },
        })
    }
}
