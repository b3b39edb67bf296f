//! A request in the form of messages.
//!
//! The tools, the system prompt and the conversation up to its end are marked for the provider's cache. They come
//! in this order and only grow at the end, so that each call of a run finds the prefix that the last one wrote.

use std::collections::BTreeSet;

use domain::{CallId, Document, Image, Message, Part, Role, Thinking, ToolCall};
use serde_json::{Map, Value, json};

use super::thinking;
use crate::{Request, ToolSpec, api::Target};

pub(super) fn body(target: &Target, request: &Request) -> Map<String, Value> {
    let mut body = target.extra.clone();
    body.entry("max_tokens").or_insert_with(|| json!(target.max_output_tokens));
    body.insert("model".into(), json!(target.id));
    body.insert("stream".into(), json!(true));
    body.insert("messages".into(), messages(&request.messages));
    let (format, instruction) = answer_form(request.response_format.as_ref());
    let system = system(request, instruction);
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    if let Some(format) = format {
        match body.entry("output_config").or_insert_with(|| json!({})) {
            Value::Object(config) => drop(config.insert("format".into(), format)),
            other => *other = json!({"format": format}),
        }
    }
    tools(request, &mut body);
    if let Some(effort) = request.effort {
        thinking::set(effort, &mut body);
    }
    body
}

/// The form of the answer as the API knows it, or as an instruction where it knows none.
fn answer_form(format: Option<&Value>) -> (Option<Value>, Option<&'static str>) {
    let schema = format.and_then(|format| format.pointer("/json_schema/schema"));
    match (schema, format) {
        (Some(schema), _) => (Some(json!({"type": "json_schema", "schema": schema})), None),
        (None, Some(format)) if format["type"] == "json_object" => {
            (None, Some("Write the final answer as one JSON object and nothing else."))
        }
        (None, _) => (None, None),
    }
}

fn system(request: &Request, instruction: Option<&str>) -> Vec<Value> {
    let client = request.messages.iter().filter(|message| message.role == Role::System);
    let texts = std::iter::once(request.system.clone()).chain(client.map(Message::joined_text));
    let texts = texts.chain(instruction.map(str::to_owned)).filter(|text| !text.trim().is_empty());
    let mut blocks: Vec<Value> = texts.map(|text| json!({"type": "text", "text": text})).collect();
    mark(&mut blocks);
    blocks
}

/// The API refuses calls in the conversation if no tools are declared: a request that offers none declares those
/// that the conversation knows, and forbids them.
fn tools(request: &Request, body: &mut Map<String, Value>) {
    let calls = || request.messages.iter().flat_map(|message| &message.tool_calls);
    let forbidden = request.tools.is_empty();
    let mut tools: Vec<Value> = if forbidden {
        let known: BTreeSet<&str> = calls().map(|call| call.name.as_str()).collect();
        known.into_iter().map(|name| json!({"name": name, "input_schema": {"type": "object"}})).collect()
    } else {
        request.tools.iter().map(tool).collect()
    };
    if tools.is_empty() {
        return;
    }
    mark(&mut tools);
    body.insert("tools".into(), tools.into());
    if forbidden {
        body.insert("tool_choice".into(), json!({"type": "none"}));
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
}

/// The conversation in turns of user and assistant: messages of one side that follow each other are one turn, and
/// so are the results of parallel calls.
fn messages(messages: &[Message]) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match (message.role, &message.answers) {
            (Role::System, _) => continue,
            (Role::Tool, Some((call, _))) => ("user", vec![tool_result(call, message)]),
            (Role::User, _) | (Role::Tool, None) => ("user", content(message)),
            (Role::Assistant, _) => ("assistant", assistant(message)),
        };
        match turns.last_mut() {
            Some((last, turn)) if *last == role => turn.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    if let Some((_, blocks)) = turns.last_mut() {
        mark(blocks);
    }
    turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

/// Marks the end of what the provider may cache. Thinking cannot be marked.
fn mark(blocks: &mut [Value]) {
    let markable =
        |block: &&mut Value| !matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    if let Some(block) = blocks.iter_mut().rev().find(markable) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn assistant(message: &Message) -> Vec<Value> {
    let mut blocks = content(message);
    blocks.extend(message.tool_calls.iter().map(tool_use));
    blocks
}

fn tool_use(call: &ToolCall) -> Value {
    let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({"type": "tool_use", "id": id(&call.id), "name": call.name, "input": input})
}

fn tool_result(call: &CallId, message: &Message) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": id(call)});
    let content = content(message);
    if !content.is_empty() {
        block["content"] = content.into();
    }
    block
}

/// The API takes fewer characters in ids than others do.
fn id(call: &CallId) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    call.as_str().chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

/// The parts that the API takes: it refuses empty texts, and thinking that it did not sign.
fn content(message: &Message) -> Vec<Value> {
    let block = |part: &Part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Image(image) => Some(json!({"type": "image", "source": source(image)})),
        Part::Document(Document { media_type, data }) => {
            let source = json!({"type": "base64", "media_type": media_type, "data": data});
            Some(json!({"type": "document", "source": source}))
        }
        Part::Thinking(block) => thinking(block),
    };
    message.parts.iter().filter_map(block).collect()
}

fn thinking(block: &Thinking) -> Option<Value> {
    if let Some(data) = &block.redacted {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    let signature = block.signature.as_ref()?;
    Some(json!({"type": "thinking", "thinking": block.text, "signature": signature}))
}

fn source(image: &Image) -> Value {
    let Some((kind, data)) = image.url.strip_prefix("data:").and_then(|uri| uri.split_once(',')) else {
        return json!({"type": "url", "url": image.url});
    };
    let written = kind.split(';').next().filter(|kind| !kind.is_empty());
    let media_type = match written.or(image.format.as_deref()).unwrap_or("image/png") {
        "image/jpg" => "image/jpeg",
        media_type => media_type,
    };
    json!({"type": "base64", "media_type": media_type, "data": data})
}

#[cfg(test)]
mod tests;
