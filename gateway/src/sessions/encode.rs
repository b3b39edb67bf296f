//! Events as JSON: the envelope, and the data of every type.

use serde_json::Value;
use wire::session::{
    Budget, Event, LlmGeneration, SessionTask, TaskMessage, ToolCompleted, TurnCompleted, VoiceTranscript,
    capability_usage, context_compacted, event::Data, llm_generation,
};

use super::{
    ids,
    object::{Object, all, name},
    parts,
};

/// An event as the protocol has it.
pub(super) fn event(event: Event) -> Value {
    let name = name(&event);
    let tags = match &event.data {
        Some(Data::InputMessage(input)) => input.message.as_ref().map(|message| message.tags.clone()),
        _ => None,
    };
    let data = event.data.map(data).unwrap_or_default();
    Object::default()
        .with("id", event.id)
        .with("type", name)
        .with("ts", event.time.map(|time| time.to_string()).unwrap_or_default())
        .with("session_id", event.session_id)
        .with("context", parts::context(event.context.unwrap_or_default()))
        .with("data", data)
        .json("metadata", event.metadata_json)
        .with("sequence", event.sequence)
        .list("tags", tags.unwrap_or_default(), Value::String)
        .into()
}

fn data(data: Data) -> Object {
    let object = Object::default();
    match data {
        Data::InputMessage(it) => object.with("message", parts::message(it.message.unwrap_or_default())),
        Data::OutputMessageStarted(it) => object
            .with("turn_id", it.turn_id)
            .with("message_id", it.message_id)
            .may("model", it.model)
            .may("iteration", it.iteration),
        Data::OutputMessageDelta(it) => object
            .with("turn_id", it.turn_id)
            .with("message_id", it.message_id)
            .with("delta", it.delta)
            .may("accumulated", it.accumulated),
        Data::OutputMessageReplaced(it) => object
            .with("turn_id", it.turn_id)
            .with("message_id", it.message_id)
            .with("guardrail_capability_id", it.guardrail_capability_id)
            .with("guardrail_id", it.guardrail_id)
            .with("reason_code", it.reason_code)
            .with("replacement", it.replacement),
        Data::OutputMessageCompleted(it) => object
            .with("message", parts::message(it.message.unwrap_or_default()))
            .may("metadata", it.metadata.map(parts::model))
            .may("usage", it.usage.map(parts::usage))
            .join(parts::failure(it.failure)),
        Data::TurnStarted(it) => object
            .with("turn_id", it.turn_id)
            .with("input_message_id", it.input_message_id)
            .may("input_content", it.input_content),
        Data::TurnCompleted(it) => turn_completed(it),
        Data::TurnFailed(it) => {
            object.with("turn_id", it.turn_id).with("error", it.error).join(parts::failure(it.failure))
        }
        Data::TurnSealed(it) => object
            .with("turn_id", it.turn_id)
            .with("reason", it.reason)
            .may("detail", it.detail)
            .may("iterations", it.iterations)
            .may("usage", it.usage.map(parts::usage)),
        Data::TurnCancelled(it) => object
            .with("turn_id", it.turn_id)
            .may("reason", it.reason)
            .may("usage", it.usage.map(parts::usage)),
        Data::SessionStarted(it) => object
            .with("harness_id", it.harness_id)
            .may("agent_id", it.agent_id)
            .may("model_id", it.model_id.map(|model| ids::model(&model))),
        Data::SessionActivated(it) => {
            object.with("turn_id", it.turn_id).with("input_message_id", it.input_message_id)
        }
        Data::SessionIdled(it) => object
            .with("turn_id", it.turn_id)
            .may("iterations", it.iterations)
            .may("usage", it.usage.map(parts::usage)),
        reasoning @ (Data::ReasonStarted(_)
        | Data::ReasonCompleted(_)
        | Data::ReasonRecovered(_)
        | Data::ReasonThinkingStarted(_)
        | Data::ReasonThinkingDelta(_)
        | Data::ReasonThinkingCompleted(_)
        | Data::ReasonItem(_)) => reason(reasoning),
        acting @ (Data::CapabilityUsage(_)
        | Data::ActStarted(_)
        | Data::ActCompleted(_)
        | Data::ToolStarted(_)
        | Data::ToolCompleted(_)
        | Data::ToolProgress(_)
        | Data::ToolOutputDelta(_)
        | Data::ToolCallRequested(_)
        | Data::ToolApprovalRequested(_)
        | Data::TranscriptRepaired(_)
        | Data::ToolCallRepaired(_)) => act(acting),
        Data::LlmGeneration(it) => generation(it),
        Data::TaskCreated(task) | Data::TaskUpdated(task) => object.with("task", session_task(task)),
        Data::TaskMessageSent(it) | Data::TaskMessageReceived(it) => task_message(it),
        Data::ContextCompacting(it) => object
            .with("reason", it.reason)
            .with("strategy", it.strategy)
            .with("messages_before", it.messages_before)
            .may("tokens_before", it.tokens_before)
            .may("model", it.model),
        Data::ContextCompacted(it) => object
            .with("strategy_used", it.strategy_used)
            .with("messages_before", it.messages_before)
            .with("messages_after", it.messages_after)
            .with("duration_ms", it.duration_ms)
            .may("tokens_before", it.tokens_before)
            .may("tokens_after", it.tokens_after)
            .list("steps", it.steps, compacted),
        Data::FileWritten(it) => object
            .with("path", it.path)
            .with("operation", it.operation)
            .with("size_bytes", it.size_bytes)
            .with("created", it.created),
        Data::BudgetWarning(it)
        | Data::BudgetPaused(it)
        | Data::BudgetExhausted(it)
        | Data::BudgetResumed(it) => budget(it),
        Data::VoiceSessionStarted(it) => object
            .with("voice_connection_id", it.voice_connection_id)
            .with("model", it.model)
            .with("voice", it.voice)
            .with("reasoning_effort", it.reasoning_effort)
            .with("transport", it.transport),
        Data::VoiceInputTranscriptDelta(it)
        | Data::VoiceInputTranscriptCompleted(it)
        | Data::VoiceOutputTranscriptDelta(it)
        | Data::VoiceOutputTranscriptCompleted(it) => transcript(it),
        Data::VoiceSessionEnded(it) => object
            .with("voice_connection_id", it.voice_connection_id)
            .may("reason", it.reason)
            .may("duration_ms", it.duration_ms),
        Data::VoiceSessionFailed(it) => {
            object.with("voice_connection_id", it.voice_connection_id).with("error", it.error)
        }
    }
}

fn turn_completed(it: TurnCompleted) -> Object {
    Object::default()
        .with("turn_id", it.turn_id)
        .with("iterations", it.iterations)
        .may("duration_ms", it.duration_ms)
        .may("usage", it.usage.map(parts::usage))
        .may("input_content", it.input_content)
        .may("final_message_id", it.final_message_id)
        .may("final_answer_preview", it.final_answer_preview)
        .may("time_to_first_token_ms", it.time_to_first_token_ms)
        .may("tool_call_count", it.tool_call_count)
        .may("llm_call_count", it.llm_call_count)
        .may("status", it.status)
        .may("termination_reason", it.termination_reason)
        .may("issue_count", it.issue_count)
        .may("stop_reason", it.stop_reason)
}

fn reason(data: Data) -> Object {
    let object = Object::default();
    match data {
        Data::ReasonStarted(it) => object
            .with("harness_id", it.harness_id)
            .may("agent_id", it.agent_id)
            .may("metadata", it.metadata.map(parts::model)),
        Data::ReasonCompleted(it) => object
            .with("success", it.success)
            .with("has_tool_calls", it.has_tool_calls)
            .with("tool_call_count", it.tool_call_count)
            .may("text_preview", it.text_preview)
            .may("error", it.error)
            .may("duration_ms", it.duration_ms)
            .may("usage", it.usage.map(parts::usage)),
        Data::ReasonRecovered(it) => object
            .with("turn_id", it.turn_id)
            .with("mode", it.mode)
            .with("accumulated_len", it.accumulated_len),
        Data::ReasonThinkingStarted(it) => object.with("turn_id", it.turn_id).may("model", it.model),
        Data::ReasonThinkingDelta(it) => {
            object.with("turn_id", it.turn_id).with("delta", it.delta).may("accumulated", it.accumulated)
        }
        Data::ReasonThinkingCompleted(it) => object.with("turn_id", it.turn_id).with("thinking", it.thinking),
        Data::ReasonItem(it) => object
            .with("turn_id", it.turn_id)
            .with("provider", it.provider)
            .with("item_id", it.item_id)
            .may("model", it.model)
            .list("summary", it.summary, Value::String)
            .may("token_count", it.token_count),
        _ => object,
    }
}

fn act(data: Data) -> Object {
    let object = Object::default();
    match data {
        Data::CapabilityUsage(it) => object.with("records", all(it.records, record)),
        Data::ActStarted(it) => {
            object.with("tool_calls", all(it.tool_calls, parts::summary)).may("headline", it.headline)
        }
        Data::ActCompleted(it) => object
            .with("completed", it.completed)
            .with("success_count", it.success_count)
            .with("error_count", it.error_count)
            .may("duration_ms", it.duration_ms)
            .may("headline", it.headline),
        Data::ToolStarted(it) => object
            .with("tool_call", parts::tool_call(it.tool_call.unwrap_or_default()))
            .may("tool_call_fingerprint", it.tool_call_fingerprint)
            .may("display_name", it.display_name)
            .may("narration", it.narration),
        Data::ToolCompleted(it) => tool_completed(it),
        Data::ToolProgress(it) => object
            .with("tool_call_id", it.tool_call_id)
            .with("tool_name", it.tool_name)
            .with("message", it.message)
            .may("display_name", it.display_name)
            .may("current", it.current)
            .may("total", it.total),
        Data::ToolOutputDelta(it) => object
            .with("tool_call_id", it.tool_call_id)
            .with("tool_name", it.tool_name)
            .with("delta", it.delta)
            .with("stream", it.stream),
        Data::ToolCallRequested(it) => object
            .with("tool_calls", all(it.tool_calls, |call| parts::tool_call(call).into()))
            .list("tool_summaries", it.tool_summaries, parts::summary)
            .may("headline", it.headline),
        Data::ToolApprovalRequested(it) => parts::approval(it),
        Data::TranscriptRepaired(it) => object
            .with("tool_call_id", it.tool_call_id)
            .with("action", it.action)
            .may("tool_name", it.tool_name),
        Data::ToolCallRepaired(it) => object
            .with("turn_id", it.turn_id)
            .with("tool_call_id", it.tool_call_id)
            .with("tool_name", it.tool_name)
            .with("outcome", it.outcome),
        _ => object,
    }
}

fn tool_completed(it: ToolCompleted) -> Object {
    Object::default()
        .with("tool_call_id", it.tool_call_id)
        .with("tool_name", it.tool_name)
        .with("success", it.success)
        .with("status", it.status)
        .list("result", it.result, parts::part)
        .may("error", it.error)
        .may("duration_ms", it.duration_ms)
        .may("display_name", it.display_name)
        .may("narration", it.narration)
        .may("tool_call_fingerprint", it.tool_call_fingerprint)
        .may("tool_result_fingerprint", it.tool_result_fingerprint)
        .may("capability_id", it.capability_id)
        .may("capability_name", it.capability_name)
        .may("severity", it.severity)
}

fn record(it: capability_usage::Record) -> Value {
    Object::default()
        .with("capability_id", it.capability_id)
        .with("usage_kind", it.usage_kind)
        .may("capability_name", it.capability_name)
        .may("tool_name", it.tool_name)
        .may("usage_count", it.usage_count)
        .may("duration_ms", it.duration_ms)
        .into()
}

fn generation(it: LlmGeneration) -> Object {
    let output = Object::default()
        .may("text", it.text)
        .list("tool_calls", it.tool_calls, |call| parts::tool_call(call).into());
    let metadata = Object::default()
        .with("model", it.model)
        .with("success", it.success)
        .may("provider", it.provider)
        .may("usage", it.usage.map(parts::usage))
        .may("duration_ms", it.duration_ms)
        .may("time_to_first_token_ms", it.time_to_first_token_ms)
        .may("error", it.error)
        .list("finish_reasons", it.finish_reasons, Value::String)
        .may("response_id", it.response_id)
        .may("retry", it.retry.map(retry))
        .may("compaction", it.compaction.map(compaction))
        .json("request_options", it.request_options_json);
    Object::default()
        .with("messages", all(it.messages, |message| parts::message(message).into()))
        .list("tools", it.tools, offered)
        .with("output", output)
        .with("metadata", metadata)
}

fn retry(it: llm_generation::Retry) -> Value {
    Object::default().with("attempts", it.attempts).with("total_wait_ms", it.total_wait_ms).into()
}

fn compaction(it: llm_generation::Compaction) -> Value {
    Object::default()
        .with("compacted", it.compacted)
        .may("input_tokens_before", it.input_tokens_before)
        .may("input_tokens_after", it.input_tokens_after)
        .may("duration_ms", it.duration_ms)
        .into()
}

fn compacted(it: context_compacted::Step) -> Value {
    Object::default()
        .with("strategy", it.strategy)
        .with("messages_after", it.messages_after)
        .with("duration_ms", it.duration_ms)
        .into()
}

fn offered(tool: llm_generation::Tool) -> Value {
    Object::default()
        .with("name", tool.name)
        .with("description", tool.description)
        .may("display_name", tool.display_name)
        .may("category", tool.category)
        .text("capability_id", tool.toolset.clone())
        .text("capability_name", tool.toolset)
        .into()
}

fn session_task(it: SessionTask) -> Object {
    let time = |time: Option<_>| time.map(|time: prost_types::Timestamp| time.to_string());
    Object::default()
        .with("id", it.id)
        .with("session_id", it.session_id)
        .with("kind", it.kind)
        .with("display_name", it.display_name)
        .json("spec", it.spec_json)
        .with("state", it.state)
        .may("state_detail", it.state_detail)
        .json("progress", it.progress_json)
        .json("input_request", it.input_request_json)
        .may("cancel_requested_at", time(it.cancel_requested_at))
        .may("summary", it.summary)
        .may("result_path", it.result_path)
        .json("artifacts", it.artifacts_json)
        .json("error", it.error_json)
        .with("attempt", it.attempt)
        .may("worker_id", it.worker_id)
        .may("heartbeat_at", time(it.heartbeat_at))
        .json("links", it.links_json)
        .with("wake_policy", it.wake_policy)
        .with("created_at", time(it.created_at).unwrap_or_default())
        .with("updated_at", time(it.updated_at).unwrap_or_default())
        .may("started_at", time(it.started_at))
        .may("finished_at", time(it.finished_at))
}

fn task_message(it: TaskMessage) -> Object {
    Object::default().with("task_id", it.task_id).with("message", parts::parsed(&it.message_json))
}

fn budget(it: Budget) -> Object {
    Object::default()
        .with("budget_id", it.budget_id)
        .with("balance", it.balance)
        .with("limit", it.limit)
        .with("currency", it.currency)
        .may("message", it.message)
        .may("soft_limit", it.soft_limit)
}

fn transcript(it: VoiceTranscript) -> Object {
    Object::default()
        .with("voice_connection_id", it.voice_connection_id)
        .with("accumulated", it.accumulated)
        .text("delta", it.delta)
        .may("item_id", it.item_id)
        .may("response_id", it.response_id)
        .may("phase", it.phase)
}

#[cfg(test)]
mod fields;
#[cfg(test)]
mod tests;
