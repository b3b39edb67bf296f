//! What an event weighs.

use domain::{Event, EventKind, Message, Part, ToolResult};

/// Bytes of text in an event.
pub(super) fn weight(event: &Event) -> usize {
    let text = match &event.kind {
        EventKind::RunStarted(started) => started.messages.iter().map(message_weight).sum(),
        EventKind::AssistantMessage(assistant) => message_weight(&assistant.message),
        EventKind::TextDelta { text, .. }
        | EventKind::ThinkingDelta { text, .. }
        | EventKind::ToolOutput { text, .. } => text.len(),
        EventKind::ToolStarted { call, description, .. } => call.arguments.len() + description.len(),
        EventKind::ToolFinished { result, .. } => result_weight(result),
        EventKind::RunFinished { answer, .. } => answer.len(),
        EventKind::RunFailed { message, .. } => message.len(),
        EventKind::AttemptAbandoned { reason, .. } | EventKind::RunCancelled { reason } => reason.len(),
        EventKind::CallResolved { call, result, .. } => call.arguments.len() + result_weight(result),
        EventKind::ApprovalRequested { approval, .. } => approval.reason.len() + approval.command.len(),
        EventKind::CallApproved { call, description, .. } => call.arguments.len() + description.len(),
        EventKind::CallAllowed { permission, .. } => permission.grant.len(),
        EventKind::CompactionDone(done) => {
            done.summary.len() + done.messages.iter().map(message_weight).sum::<usize>()
        }
        EventKind::CompactionFailed { reason, .. } => reason.len(),
        EventKind::Notice { text } | EventKind::ReplProgress { text, .. } => text.len(),
        EventKind::ReplInput { call, .. } => call.arguments.len(),
        EventKind::ReplOutput { output, .. } => {
            output.stdout.len() + output.answer.as_ref().map_or(0, String::len)
        }
        EventKind::QuestionAnswered(answered) => answered.prompt.len() + answered.answer.len(),
        EventKind::Steered(steered) => message_weight(&steered.message),
        EventKind::SessionRecord(record) => record.bytes.len(),
        EventKind::CallPlaced { placement, .. } => placement.executor.len() + placement.instance.len(),
        EventKind::RunRecovered
        | EventKind::RunHandedOver
        | EventKind::ModelCalled(_)
        | EventKind::CompactionStarted(_)
        | EventKind::UsageReported(_)
        | EventKind::ClientToolRequested { .. }
        | EventKind::RunSuspended => 0,
    };
    size_of::<Event>() + text
}

fn result_weight(result: &ToolResult) -> usize {
    let images = result.images.iter().map(|image| image.url.len());
    let documents = result.documents.iter().map(|document| document.data.len());
    result.data.len() + images.chain(documents).sum::<usize>()
}

fn message_weight(message: &Message) -> usize {
    let parts = message.parts.iter().map(part_weight);
    let calls = message.tool_calls.iter().map(|call| call.arguments.len());
    size_of::<Message>()
        + parts.chain(calls).sum::<usize>()
        + message.client_json.as_ref().map_or(0, String::len)
}

fn part_weight(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.len(),
        Part::Image(image) => image.url.len(),
        Part::Document(document) => document.data.len(),
        Part::Thinking(thinking) => thinking.text.len(),
    }
}
