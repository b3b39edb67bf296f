//! Whether somebody must work on a log.

use domain::{AgentId, Event, EventKind, Outcome};

/// How the newest run of a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There was none yet.
    Empty,
    /// It goes on: the log needs an owner.
    Running,
    /// It has ended.
    Ended(Outcome),
}

impl State {
    /// What events say of it; `None` if nothing.
    pub(crate) fn told_by(events: &[Event]) -> Option<Self> {
        let main = AgentId::main();
        events.iter().rev().filter(|event| event.agent == main).find_map(|event| of(&event.kind))
    }
}

fn of(kind: &EventKind) -> Option<State> {
    match kind {
        EventKind::RunStarted(_) => Some(State::Running),
        EventKind::RunFinished { .. } => Some(State::Ended(Outcome::Finished)),
        EventKind::RunFailed { .. } => Some(State::Ended(Outcome::Failed)),
        EventKind::RunCancelled { .. } => Some(State::Ended(Outcome::Cancelled)),
        EventKind::RunSuspended => Some(State::Ended(Outcome::Suspended)),
        EventKind::SessionRecord(record) if record.busy => Some(State::Running),
        EventKind::SessionRecord(_) => Some(State::Ended(Outcome::Finished)),
        EventKind::RunRecovered
        | EventKind::RunHandedOver
        | EventKind::CallPlaced { .. }
        | EventKind::ModelCalled(_)
        | EventKind::AttemptAbandoned { .. }
        | EventKind::TextDelta { .. }
        | EventKind::ThinkingDelta { .. }
        | EventKind::UsageReported(_)
        | EventKind::QuestionAnswered(_)
        | EventKind::AssistantMessage(_)
        | EventKind::ToolStarted { .. }
        | EventKind::ToolOutput { .. }
        | EventKind::ToolFinished { .. }
        | EventKind::ReplInput { .. }
        | EventKind::ReplProgress { .. }
        | EventKind::ReplOutput { .. }
        | EventKind::ClientToolRequested { .. }
        | EventKind::ApprovalRequested { .. }
        | EventKind::CallApproved { .. }
        | EventKind::CallAllowed { .. }
        | EventKind::CallResolved { .. }
        | EventKind::CompactionStarted(_)
        | EventKind::CompactionDone(_)
        | EventKind::Steered(_)
        | EventKind::CompactionFailed { .. }
        | EventKind::Notice { .. } => None,
    }
}
