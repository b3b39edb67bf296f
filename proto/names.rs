//! The names of a session's events, and of what an auditor sees.

use crate::{account::audit_entry::What, session::event::Data};

/// The names of what happened in an account.
pub const AUDIT_KINDS: [&str; 6] = ["asked", "began", "waits", "allowed", "ended", "closed"];

impl What {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Asked(_) => "asked",
            Self::Began(_) => "began",
            Self::Waits(_) => "waits",
            Self::Allowed(_) => "allowed",
            Self::Ended(_) => "ended",
            Self::Closed(_) => "closed",
        }
    }
}

/// All names, in the order of the catalogue.
pub const SESSION_EVENTS: [&str; 50] = [
    "input.message",
    "output.message.started",
    "output.message.delta",
    "output.message.replaced",
    "output.message.completed",
    "turn.started",
    "turn.completed",
    "turn.failed",
    "turn.sealed",
    "turn.cancelled",
    "reason.started",
    "reason.completed",
    "reason.recovered",
    "transcript.repaired",
    "act.started",
    "act.completed",
    "tool.started",
    "tool.completed",
    "tool.progress",
    "tool.output.delta",
    "tool.call_requested",
    "tool.call_repaired",
    "tool.approval_requested",
    "task.created",
    "task.updated",
    "task.message.sent",
    "task.message.received",
    "llm.generation",
    "reason.thinking.started",
    "reason.thinking.delta",
    "reason.thinking.completed",
    "reason.item",
    "capability.usage",
    "session.started",
    "session.activated",
    "session.idled",
    "context.compacting",
    "context.compacted",
    "file.written",
    "budget.warning",
    "budget.paused",
    "budget.exhausted",
    "budget.resumed",
    "voice.session.started",
    "voice.input_transcript.delta",
    "voice.input_transcript.completed",
    "voice.output_transcript.delta",
    "voice.output_transcript.completed",
    "voice.session.ended",
    "voice.session.failed",
];

impl Data {
    /// The protocol's name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::InputMessage(_) => "input.message",
            Self::OutputMessageStarted(_) => "output.message.started",
            Self::OutputMessageDelta(_) => "output.message.delta",
            Self::OutputMessageReplaced(_) => "output.message.replaced",
            Self::OutputMessageCompleted(_) => "output.message.completed",
            Self::TurnStarted(_) => "turn.started",
            Self::TurnCompleted(_) => "turn.completed",
            Self::TurnFailed(_) => "turn.failed",
            Self::TurnSealed(_) => "turn.sealed",
            Self::TurnCancelled(_) => "turn.cancelled",
            Self::SessionStarted(_) => "session.started",
            Self::SessionActivated(_) => "session.activated",
            Self::SessionIdled(_) => "session.idled",
            Self::ReasonStarted(_) => "reason.started",
            Self::ReasonCompleted(_) => "reason.completed",
            Self::ReasonRecovered(_) => "reason.recovered",
            Self::ReasonThinkingStarted(_) => "reason.thinking.started",
            Self::ReasonThinkingDelta(_) => "reason.thinking.delta",
            Self::ReasonThinkingCompleted(_) => "reason.thinking.completed",
            Self::ReasonItem(_) => "reason.item",
            Self::CapabilityUsage(_) => "capability.usage",
            Self::ActStarted(_) => "act.started",
            Self::ActCompleted(_) => "act.completed",
            Self::ToolStarted(_) => "tool.started",
            Self::ToolCompleted(_) => "tool.completed",
            Self::ToolProgress(_) => "tool.progress",
            Self::ToolOutputDelta(_) => "tool.output.delta",
            Self::ToolCallRequested(_) => "tool.call_requested",
            Self::ToolApprovalRequested(_) => "tool.approval_requested",
            Self::TranscriptRepaired(_) => "transcript.repaired",
            Self::ToolCallRepaired(_) => "tool.call_repaired",
            Self::LlmGeneration(_) => "llm.generation",
            Self::TaskCreated(_) => "task.created",
            Self::TaskUpdated(_) => "task.updated",
            Self::TaskMessageSent(_) => "task.message.sent",
            Self::TaskMessageReceived(_) => "task.message.received",
            Self::ContextCompacting(_) => "context.compacting",
            Self::ContextCompacted(_) => "context.compacted",
            Self::FileWritten(_) => "file.written",
            Self::BudgetWarning(_) => "budget.warning",
            Self::BudgetPaused(_) => "budget.paused",
            Self::BudgetExhausted(_) => "budget.exhausted",
            Self::BudgetResumed(_) => "budget.resumed",
            Self::VoiceSessionStarted(_) => "voice.session.started",
            Self::VoiceInputTranscriptDelta(_) => "voice.input_transcript.delta",
            Self::VoiceInputTranscriptCompleted(_) => "voice.input_transcript.completed",
            Self::VoiceOutputTranscriptDelta(_) => "voice.output_transcript.delta",
            Self::VoiceOutputTranscriptCompleted(_) => "voice.output_transcript.completed",
            Self::VoiceSessionEnded(_) => "voice.session.ended",
            Self::VoiceSessionFailed(_) => "voice.session.failed",
        }
    }
}
