//! Agents that the agent starts, as tasks of the session.

use domain::{CallId, Event, EventKind, RunStarted};
use serde_json::json;
use wire::session::{SessionTask, event::Data};

use super::{Draft, Projection, line};
use crate::sessions::{
    failure::{Cause, Disclosure},
    ids, words,
};

/// What an agent is among the kinds of tasks.
const KIND: &str = "subagent";
/// Characters of a task's name.
const NAME: usize = 80;

/// An agent that goes on.
pub(super) struct Task {
    /// The call that it is the result of.
    of: Option<CallId>,
    /// Tools that it has called.
    calls: u32,
    /// What was told of it last.
    told: SessionTask,
}

impl Projection {
    /// What an event of another agent than the one that answers says of its task.
    pub(super) fn task(&mut self, event: &Event, out: &mut Vec<Draft>) {
        let drawn = match &event.kind {
            EventKind::RunStarted(started) => {
                let task = self.new_task(event, started);
                self.tasks.insert(
                    event.agent.clone(),
                    Task { of: started.call.clone(), calls: 0, told: task.clone() },
                );
                Data::TaskCreated(task)
            }
            EventKind::AssistantMessage(said) if !said.message.tool_calls.is_empty() => {
                let call = self.tasks.get(&event.agent).and_then(|task| task.of.clone());
                let text = words::preview(&said.message.joined_text());
                if let (Some(call), Some(text)) = (call, text) {
                    self.progressed(&call, &text, out);
                }
                return;
            }
            EventKind::UsageReported(report) => {
                self.tally.others.insert(event.agent.clone(), report.totals);
                return;
            }
            EventKind::ToolStarted { call, description, .. } => {
                let Some(task) = self.tasks.get_mut(&event.agent) else { return };
                task.calls += 1;
                let progress = json!({ "label": line(call, description), "current": task.calls });
                task.told.progress_json = Some(progress.to_string());
                updated(&mut task.told, event)
            }
            kind => {
                let Some(ended) = ended(kind, self.disclosure) else { return };
                let Some(Task { told: mut task, .. }) = self.tasks.remove(&event.agent) else { return };
                ended.state.clone_into(&mut task.state);
                task.summary = ended.summary.as_deref().and_then(words::preview);
                task.error_json = ended
                    .error
                    .map(|(kind, message)| json!({ "kind": kind, "message": message }).to_string());
                task.finished_at = Some(wire::time(event.time));
                updated(&mut task, event)
            }
        };
        out.push((self.context(), drawn));
    }

    fn new_task(&self, event: &Event, started: &RunStarted) -> SessionTask {
        let asked = started.messages.first().map(domain::Message::joined_text).unwrap_or_default();
        let now = Some(wire::time(event.time));
        let call = started.call.as_ref().map(CallId::as_str);
        SessionTask {
            id: ids::named("task_", &format!("{}/{}", event.run, event.agent)),
            session_id: self.ids.session.clone(),
            kind: KIND.to_owned(),
            display_name: asked.lines().next().unwrap_or_default().chars().take(NAME).collect(),
            spec_json: Some(json!({ "task": asked, "tool_call_id": call }).to_string()),
            state: "running".to_owned(),
            attempt: 1,
            worker_id: Some(event.agent.as_str().to_owned()),
            wake_policy: "silent".to_owned(),
            created_at: now,
            updated_at: now,
            started_at: now,
            ..SessionTask::default()
        }
    }
}

fn updated(task: &mut SessionTask, event: &Event) -> Data {
    task.updated_at = Some(wire::time(event.time));
    Data::TaskUpdated(task.clone())
}

/// How a task ended.
struct Ended {
    state: &'static str,
    summary: Option<String>,
    error: Option<(&'static str, String)>,
}

fn ended(kind: &EventKind, disclosure: Disclosure) -> Option<Ended> {
    match kind {
        EventKind::RunFinished { answer, .. } => {
            Some(Ended { state: "succeeded", summary: Some(answer.clone()), error: None })
        }
        EventKind::RunFailed { code, message } => {
            let told = Cause::from(*code).text(disclosure, message);
            Some(Ended { state: "failed", summary: None, error: Some(("failed", told)) })
        }
        EventKind::RunSuspended => {
            let why = "it needed the client, which it cannot reach".to_owned();
            Some(Ended { state: "failed", summary: None, error: Some(("needs_client", why)) })
        }
        EventKind::RunCancelled { reason } => {
            Some(Ended { state: "canceled", summary: Some(reason.clone()), error: None })
        }
        _ => None,
    }
}
