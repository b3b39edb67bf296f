//! The answer that is not streamed: the events of the stream, gathered into one JSON object.

use serde::Serialize;

use crate::{
    answer::{Answer, Interruption},
    problem::Problem,
};

use super::{
    approval::PendingApproval,
    encode::Encoder,
    events::{AiAnswerEnd, ApprovalRequired, Event, FollowUp, Metadata, ToolCallingResult, ToolResult},
    history::Outgoing,
};

/// The answer of a chat.
#[derive(Debug, Serialize)]
pub(super) struct Reply {
    analysis: String,
    conversation_history: Vec<Outgoing>,
    tool_calls: Vec<Called>,
    follow_up_actions: &'static [FollowUp],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    requires_approval: bool,
    pending_approvals: Option<Vec<PendingApproval>>,
    metadata: Metadata,
}

/// How a run ended that was not streamed.
#[derive(Debug)]
pub(crate) enum End {
    Answered(Box<AiAnswerEnd>),
    /// A person has to decide first.
    Waits(Box<ApprovalRequired>),
}

/// A tool call that has ended.
#[derive(Debug, Serialize)]
pub(crate) struct Called {
    tool_call_id: String,
    tool_name: String,
    description: String,
    result: Option<ToolResult>,
    size: Option<u64>,
    toolset_name: Option<String>,
}

/// Waits for the end of a run; gives it with the tool calls on the way there.
pub(crate) async fn gather(
    mut answer: Answer,
    encoder: &mut Encoder,
) -> Result<(End, Vec<ToolCallingResult>), Problem> {
    let mut tool_calls = Vec::new();
    while let Some(event) = answer.next().await? {
        match encoder.encode(event) {
            Some(Event::ToolCallingResult(result)) => tool_calls.push(*result),
            Some(Event::AiAnswerEnd(end)) => return Ok((End::Answered(end), tool_calls)),
            Some(Event::Error(error)) => {
                return Err(Problem::new(error.status, error.description).retry_after(error.retry_after));
            }
            Some(Event::ApprovalRequired(waits)) => return Ok((End::Waits(waits), tool_calls)),
            Some(
                Event::StartToolCalling(_)
                | Event::AiMessage(_)
                | Event::Notice(_)
                | Event::TokenCount(_)
                | Event::CompactionStart(_)
                | Event::Compacted(_),
            )
            | None => {}
        }
    }
    Err(Interruption::CutShort.into())
}

impl Reply {
    pub(super) fn new(end: AiAnswerEnd, tool_calls: Vec<ToolCallingResult>) -> Self {
        Self {
            analysis: end.analysis,
            conversation_history: end.conversation_history,
            tool_calls: tool_calls.into_iter().map(Called::from).collect(),
            follow_up_actions: end.follow_up_actions,
            requires_approval: false,
            pending_approvals: None,
            metadata: end.metadata,
        }
    }

    pub(super) fn waiting(waits: ApprovalRequired, tool_calls: Vec<ToolCallingResult>) -> Self {
        Self {
            analysis: String::new(),
            conversation_history: waits.conversation_history,
            tool_calls: tool_calls.into_iter().map(Called::from).collect(),
            follow_up_actions: waits.follow_up_actions,
            requires_approval: true,
            pending_approvals: Some(waits.pending_approvals),
            metadata: waits.metadata,
        }
    }
}

impl From<ToolCallingResult> for Called {
    fn from(result: ToolCallingResult) -> Self {
        Self {
            tool_call_id: result.tool_call_id,
            tool_name: result.tool_name,
            description: result.description,
            result: result.result,
            size: None,
            toolset_name: result.toolset_name,
        }
    }
}
