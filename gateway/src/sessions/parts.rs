//! What the protocol's events and answers are made of, as JSON.

use serde_json::{Value, json};
use wire::session::{
    ContentPart, Context, Controls, ExternalActor, Failure, Message, ModelMetadata, ToolApprovalRequested,
    ToolCall, ToolCallSummary, Usage, content_part::Part,
};

use super::{
    ids,
    object::{Object, all},
};

/// JSON of a text that should be JSON: the text itself if it is not.
pub(super) fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

pub(super) fn context(context: Context) -> Object {
    Object::default()
        .text("turn_id", context.turn_id)
        .text("input_message_id", context.input_message_id)
        .text("exec_id", context.exec_id)
        .text("trace_id", context.trace_id)
        .text("span_id", context.span_id)
        .text("parent_span_id", context.parent_span_id)
}

pub(super) fn message(message: Message) -> Object {
    Object::default()
        .with("id", message.id)
        .with("role", message.role)
        .with("content", all(message.content, part))
        .may("created_at", message.created_at.map(|time| time.to_string()))
        .may("phase", message.phase)
        .may("thinking", message.thinking)
        .may("controls", message.controls.map(controls))
        .json("metadata", message.metadata_json)
        .may("external_actor", message.external_actor.map(external_actor))
        .list("tags", message.tags, Value::String)
}

pub(super) fn part(part: ContentPart) -> Value {
    let typed = |kind: &str| Object::default().with("type", kind);
    let object = match part.part {
        Some(Part::Text(text)) => typed("text").with("text", text),
        Some(Part::Image(image)) => typed("image")
            .may("url", image.url)
            .may("base64", image.base64)
            .may("media_type", image.media_type),
        Some(Part::ImageFile(file)) => {
            typed("image_file").with("image_id", file.image_id).may("filename", file.filename)
        }
        Some(Part::ToolCall(call)) => typed("tool_call").join(tool_call(call)),
        Some(Part::ToolResult(result)) => typed("tool_result")
            .with("tool_call_id", result.tool_call_id)
            .may("result", result.result_json.map(|json| parsed(&json)))
            .may("error", result.error),
        None => typed("text").with("text", ""),
    };
    object.into()
}

fn controls(controls: Controls) -> Value {
    let reasoning = controls.reasoning_effort.map(|effort| json!({ "effort": effort }));
    Object::default()
        .may("model_id", controls.model_id.map(|model| ids::model(&model)))
        .may("reasoning", reasoning)
        .may("locale", controls.locale)
        .may("error_disclosure", controls.error_disclosure)
        .json("hints", controls.hints_json)
        .into()
}

fn external_actor(actor: ExternalActor) -> Value {
    let metadata = (!actor.metadata.is_empty()).then(|| json!(actor.metadata));
    Object::default()
        .with("actor_id", actor.actor_id)
        .with("source", actor.source)
        .may("actor_name", actor.actor_name)
        .may("metadata", metadata)
        .into()
}

pub(super) fn usage(usage: Usage) -> Value {
    Object::default()
        .with("input_tokens", usage.input_tokens)
        .with("output_tokens", usage.output_tokens)
        .may("cache_read_tokens", usage.cache_read_tokens)
        .may("cache_creation_tokens", usage.cache_creation_tokens)
        .may("estimated_cost_usd", usage.estimated_cost_usd)
        .may("actual_cost_usd", usage.actual_cost_usd)
        .may("effective_cost_usd", usage.effective_cost_usd)
        .into()
}

pub(super) fn model(ModelMetadata { model, provider }: ModelMetadata) -> Value {
    Object::default()
        .with("model_id", ids::model(&model))
        .with("model", model)
        .may("provider_id", provider.map(|provider| ids::provider(&provider)))
        .into()
}

pub(super) fn tool_call(call: ToolCall) -> Object {
    Object::default()
        .with("id", call.id)
        .with("name", call.name)
        .with("arguments", parsed(&call.arguments_json))
}

pub(super) fn summary(summary: ToolCallSummary) -> Value {
    Object::default()
        .with("id", summary.id)
        .with("name", summary.name)
        .may("display_name", summary.display_name)
        .may("narration", summary.narration)
        .into()
}

pub(super) fn failure(failure: Option<Failure>) -> Object {
    let failure = failure.unwrap_or_default();
    Object::default()
        .may("error_code", failure.code)
        .json("error_fields", failure.fields_json)
        .may("error_disclosure", failure.disclosure)
}

pub(super) fn approval(asked: ToolApprovalRequested) -> Object {
    let call = asked.tool_call.unwrap_or_default();
    Object::default()
        .with("tool_call", tool_call(call))
        .with("reason", asked.reason)
        .may("command", asked.command)
        .may("target", asked.target)
        .with("effect", asked.effect)
        .list("prefixes", asked.prefixes, Value::String)
}
