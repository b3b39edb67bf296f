//! The answer that is not streamed: the events of the stream, gathered into one JSON object.

use http::StatusCode;
use serde::Serialize;

use crate::{
    answer::{Answer, Interruption},
    problem::Problem,
};

use super::{
    encode::Encoder,
    events::{AiAnswerEnd, Event, FollowUp, Metadata, ToolCallingResult, ToolResult},
    history::Outgoing,
};

/// The answer of a chat.
#[derive(Debug, Serialize)]
pub(super) struct Reply {
    analysis: String,
    conversation_history: Vec<Outgoing>,
    tool_calls: Vec<Called>,
    follow_up_actions: &'static [FollowUp],
    pending_approvals: Option<()>,
    metadata: Metadata,
}

/// A tool call that has ended.
#[derive(Debug, Serialize)]
pub(super) struct Called {
    tool_call_id: String,
    tool_name: String,
    description: String,
    result: Option<ToolResult>,
    size: Option<u64>,
    toolset_name: Option<String>,
}

/// Waits for the end of a run; gives it with the tool calls on the way there.
pub(super) async fn gather(
    mut answer: Answer,
    mut encoder: Encoder,
) -> Result<(AiAnswerEnd, Vec<ToolCallingResult>), Problem> {
    let mut tool_calls = Vec::new();
    while let Some(event) = answer.next().await? {
        match encoder.encode(event) {
            Some(Event::ToolCallingResult(result)) => tool_calls.push(*result),
            Some(Event::AiAnswerEnd(end)) => return Ok((*end, tool_calls)),
            Some(Event::Error(error)) => return Err(Problem::new(error.status, &error.description)),
            Some(Event::ApprovalRequired(_)) => {
                let text = "The run waits for the client, which needs a stream";
                return Err(Problem::new(StatusCode::BAD_REQUEST, text));
            }
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
            pending_approvals: None,
            metadata: end.metadata,
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
