//! OpenAI's chat completions, from the server's side.

use serde_json::{Value, json};

use super::{
    script::{Conversation, Reply, Speaker, Turn},
    server::{Api, Rendering},
};

/// Chat completions.
#[derive(Debug)]
pub struct OpenAi;

impl Api for OpenAi {
    const NAME: &'static str = "openai";
    const PATH: &'static str = "/v1/chat/completions";

    fn render(request: &Value) -> Rendering {
        Rendering {
            conversation: conversation(request),
            streams: request["stream"] == true,
            frames,
            whole,
            error,
            error_frame: |text| format!("data: {}\n\n", error(500, text)),
        }
    }
}

fn conversation(request: &Value) -> Conversation {
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    Conversation {
        turns: messages.iter().map(turn).collect(),
        offers_tools: has_items(&request["tools"]),
        size: request["messages"].to_string().len() + request["tools"].to_string().len(),
    }
}

fn turn(message: &Value) -> Turn {
    Turn {
        speaker: match message["role"].as_str() {
            Some("assistant") => Speaker::Assistant,
            Some("user") => Speaker::User,
            _ => Speaker::Other,
        },
        text: text(&message["content"]),
        calls_tools: message["role"] == "assistant" && has_items(&message["tool_calls"]),
    }
}

/// The text of a content, which is a text or a list of parts.
pub(super) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

pub(super) fn has_items(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty())
}

/// A text in pieces of a few characters.
pub(super) fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(7).map(|piece| piece.iter().collect()).collect()
}

fn frames(reply: &Reply) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    deltas.extend(pieces(&reply.thinking).into_iter().map(|piece| json!({"reasoning_content": piece})));
    deltas.extend(pieces(&reply.text).into_iter().map(|piece| json!({"content": piece})));
    for (index, call) in reply.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        deltas.push(json!({"tool_calls": [
            {"index": index, "id": call.id, "type": "function", "function": function}
        ]}));
        deltas.extend(
            pieces(&call.arguments)
                .into_iter()
                .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})),
        );
    }
    let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| chunk(&delta, None)).collect();
    chunks.push(chunk(&json!({}), Some(finish_reason(reply))));
    chunks.push(json!({"object": "chat.completion.chunk", "choices": [], "usage": usage(reply)}));
    let done = std::iter::once("data: [DONE]\n\n".to_owned());
    chunks.into_iter().map(|chunk| format!("data: {chunk}\n\n")).chain(done).collect()
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    })
}

fn whole(reply: &Reply) -> Value {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|call| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": null});
    if !reply.text.is_empty() {
        message["content"] = json!(reply.text);
    }
    if !reply.thinking.is_empty() {
        message["reasoning_content"] = json!(reply.thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
        "usage": usage(reply),
    })
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(reply: &Reply) -> Value {
    json!({
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    })
}

fn error(status: u16, text: &str) -> Value {
    let kind = match status {
        401 | 403 => "authentication_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    };
    json!({"error": {"message": text, "type": kind, "param": null, "code": null}})
}
