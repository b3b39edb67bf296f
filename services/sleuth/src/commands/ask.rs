//! `sleuth ask`: live progress on standard error, the answer on standard output.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use domain::{AgentId, Event, EventKind, Limits, Run};
use grants::SigningKey;
use runtime::signals;
use tonic::{Status, Streaming};
use wire::agent::{self, ChatRequest, File, RlmMode};

use super::{
    Context,
    approve::{self, Waiting},
};
use crate::{
    cli::{Ask, Mode},
    services::{Client, connect},
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
    // Only executors of its own trust what this program signs.
    let key = private.as_ref().map(|private| private.key().clone()).filter(|_| approve::is_attended());
    let rlm = match flags.mode {
        Mode::Agent => None,
        Mode::Rlm => Some(RlmMode {
            context: flags.context.as_deref().map(input).transpose()?.unwrap_or_default(),
            max_depth: flags.max_depth,
            max_iterations: flags.max_iterations.unwrap_or_default(),
            ..RlmMode::default()
        }),
    };
    let request = ChatRequest {
        rlm,
        question: flags.question,
        model: flags.model.unwrap_or_default(),
        cluster: flags.cluster,
        files,
        behavior_controls: without.iter().map(|section| ((*section).to_owned(), false)).collect(),
        approvals: key.is_some(),
        ..ChatRequest::default()
    };
    let asked = answer(&mut client, request, key.as_ref(), flags.client.json);
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

/// Asks, and goes on after each decision of the person until there is an answer.
async fn answer(
    client: &mut Client,
    mut request: ChatRequest,
    key: Option<&SigningKey>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    loop {
        let events = client.chat(request.clone()).await?.into_inner();
        let waiting = match follow(events, json).await? {
            End::Answered => return Ok(ExitCode::SUCCESS),
            End::Waits(waiting) => waiting,
        };
        let Some(key) = key else { anyhow::bail!("the run waits for an approval that nobody here can give") };
        request.decisions = approve::decide(&waiting, key).await?;
        request.history = waiting.run.messages().iter().cloned().map(Into::into).collect();
        request.question.clear();
        request.files.clear();
    }
}

/// How a stream ended.
enum End {
    Answered,
    Waits(Box<Waiting>),
}

/// A text of any length.
fn input(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).context("cannot read standard input");
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read(path: &PathBuf) -> anyhow::Result<File> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(File { name: path.display().to_string(), text })
}

async fn follow(mut events: Streaming<agent::Event>, json: bool) -> anyhow::Result<End> {
    let mut progress = Progress::new(!json);
    let mut report = Report::default();
    let mut run = Run::new(Limits::default());
    let (mut started, mut waits) = (HashMap::new(), Vec::new());
    while let Some(event) = events.message().await? {
        let event: Event = event.try_into()?;
        run.see(&event.agent, &event.kind);
        report.usage = run.totals_of_all();
        if event.agent != AgentId::main() {
            progress.show_part(&event.kind);
            continue;
        }
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
                return Ok(End::Answered);
            }
            EventKind::RunFailed { message, .. } => anyhow::bail!(message),
            EventKind::ToolStarted { call, .. } => drop(started.insert(call.id.clone(), call)),
            EventKind::ApprovalRequested { call, approval } => {
                waits.extend(started.remove(&call).map(|call| (call, approval)));
            }
            EventKind::RunSuspended => {
                let run_id = event.run.as_str().to_owned();
                return Ok(End::Waits(Box::new(Waiting { run_id, run, calls: waits })));
            }
            EventKind::RunCancelled { reason } => anyhow::bail!("the run was cancelled: {reason}"),
            EventKind::RunStarted(_)
            | EventKind::RunRecovered
            | EventKind::RunHandedOver
            | EventKind::CallPlaced { .. }
            | EventKind::SessionRecord(_)
            | EventKind::ModelCalled(_)
            | EventKind::AttemptAbandoned { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::UsageReported(_)
            | EventKind::QuestionAnswered(_)
            | EventKind::AssistantMessage(_)
            | EventKind::CallApproved { .. }
            | EventKind::CallAllowed { .. }
            | EventKind::ToolOutput { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::ReplInput { .. }
            | EventKind::ReplProgress { .. }
            | EventKind::ReplOutput { .. }
            | EventKind::ClientToolRequested { .. }
            | EventKind::CallResolved { .. }
            | EventKind::CompactionStarted(_)
            | EventKind::CompactionDone(_)
            | EventKind::Steered(_)
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
