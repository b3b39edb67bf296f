//! The steps of a run as they happen, on standard error.

use std::{
    collections::HashMap,
    io::{IsTerminal as _, Write as _},
};

use domain::{CallId, EventKind, ToolResult, ToolStatus};

use super::harmless;

/// Characters of a line that says what a tool does.
const WIDTH: usize = 110;

/// Shows the steps of a run.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    colored: bool,
    calls: HashMap<CallId, String>,
}

impl Progress {
    /// Shows nothing unless `shown`.
    pub(crate) fn new(shown: bool) -> Self {
        Self { shown, colored: std::io::stderr().is_terminal(), calls: HashMap::new() }
    }

    /// What a subagent does: only what it looks at.
    pub(crate) fn show_part(&mut self, event: &EventKind) {
        if let EventKind::ToolStarted { .. } | EventKind::ToolFinished { .. } = event {
            self.show(event);
        }
    }

    /// Shows an event, if a person wants to see it.
    pub(crate) fn show(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted(started) => self.line("", &format!("asking {}", started.model)),
            EventKind::AssistantMessage(assistant) if !assistant.message.tool_calls.is_empty() => {
                let text = assistant.message.joined_text();
                if !text.trim().is_empty() {
                    self.line("", text.trim());
                }
            }
            EventKind::ToolStarted { call, description, .. } => {
                let what = if description.is_empty() { &call.name } else { description };
                self.line("→", what);
                self.calls.insert(call.id.clone(), what.clone());
            }
            EventKind::CallApproved { call, description, .. } => {
                self.calls.insert(call.id.clone(), description.clone());
            }
            EventKind::ApprovalRequested { call, .. } => {
                let what = self.calls.remove(call).unwrap_or_default();
                self.line("?", &what);
            }
            EventKind::ToolFinished { call, result } => {
                let what = self.calls.remove(call).unwrap_or_default();
                let (mark, line) = ended(&what, result);
                self.line(mark, &line);
            }
            EventKind::AttemptAbandoned { reason, .. } | EventKind::CompactionFailed { reason, .. } => {
                self.line("!", reason);
            }
            EventKind::ReplInput { call, .. } => self.line("→", &code_line(&call.arguments)),
            EventKind::ReplOutput { output, .. } => match &output.error {
                None => self.line("✓", &output.stdout),
                Some(error) => self.line("✗", error),
            },
            EventKind::RunRecovered => self.line("!", "the server was lost; the run goes on"),
            EventKind::Notice { text } => self.line("", text),
            EventKind::Steered(steered) => self.line("›", &steered.message.joined_text()),
            EventKind::CompactionStarted(_) => self.line("", "compacting the conversation"),
            EventKind::CallAllowed { .. }
            | EventKind::RunHandedOver
            | EventKind::CallPlaced { .. }
            | EventKind::AssistantMessage(_)
            | EventKind::SessionRecord(_)
            | EventKind::ModelCalled(_)
            | EventKind::CompactionDone(_)
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::UsageReported(_)
            | EventKind::QuestionAnswered(_)
            | EventKind::ToolOutput { .. }
            | EventKind::ReplProgress { .. }
            | EventKind::ClientToolRequested { .. }
            | EventKind::CallResolved { .. }
            | EventKind::RunSuspended
            | EventKind::RunFinished { .. }
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. } => {}
        }
    }

    /// Leaves a line between the steps and the answer.
    pub(crate) fn end(&self) {
        if self.shown {
            let _ = writeln!(std::io::stderr());
        }
    }

    fn line(&self, mark: &str, text: &str) {
        if !self.shown {
            return;
        }
        let text = one_line(&harmless(text));
        let line = if mark.is_empty() { text } else { format!("{mark} {text}") };
        // Progress is a courtesy: where standard error is gone, the answer still counts.
        let _ = if self.colored {
            writeln!(std::io::stderr(), "\u{1b}[2m{line}\u{1b}[0m")
        } else {
            writeln!(std::io::stderr(), "{line}")
        };
    }
}

fn ended(what: &str, result: &ToolResult) -> (&'static str, String) {
    let seconds =
        result.elapsed.map(|elapsed| format!(" ({:.1} s)", elapsed.as_secs_f64())).unwrap_or_default();
    match result.status {
        ToolStatus::Success => ("✓", format!("{what}{seconds}")),
        ToolStatus::NoData => ("✓", format!("{what}: nothing{seconds}")),
        ToolStatus::Error => {
            let error = result.error.as_deref().unwrap_or("failed");
            ("✗", format!("{what}{seconds}: {error}"))
        }
    }
}

/// The code of a call.
fn code_line(arguments: &str) -> String {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments["code"].as_str().unwrap_or_default().to_owned()
}

fn one_line(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > WIDTH {
        words = words.chars().take(WIDTH - 1).collect();
        words.push('…');
    }
    words
}
