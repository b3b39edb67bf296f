//! Anthropic's messages, from the server's side.

use serde_json::{Value, json};

use super::{
    openai::{has_items, pieces, text},
    script::{Conversation, Reply, Speaker, Turn},
    server::{Api, Rendering},
};

/// Messages.
#[derive(Debug)]
pub struct Anthropic;

impl Api for Anthropic {
    const NAME: &'static str = "anthropic";
    const PATH: &'static str = "/v1/messages";

    fn render(request: &Value) -> Rendering {
        Rendering {
            conversation: conversation(request),
            streams: request["stream"] == true,
            frames,
            whole,
            error,
            error_frame: |text| frame("error", &error(529, text)),
        }
    }
}

fn conversation(request: &Value) -> Conversation {
    let system = text(&request["system"]);
    let mut turns = Vec::new();
    if !system.is_empty() {
        turns.push(Turn { speaker: Speaker::Other, text: system, calls_tools: false });
    }
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    turns.extend(messages.iter().flat_map(message_turns));
    Conversation {
        turns,
        offers_tools: has_items(&request["tools"]) && request["tool_choice"]["type"] != "none",
        size: ["system", "messages", "tools"].iter().map(|key| request[key].to_string().len()).sum(),
    }
}

/// The turns that another API would need for one message: each tool result is one of its own.
fn message_turns(message: &Value) -> Vec<Turn> {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let is = |kind: &'static str| move |block: &&Value| block["type"] == kind;
    if message["role"] == "assistant" {
        let calls_tools = blocks.iter().any(|block| is("tool_use")(&block));
        return vec![Turn { speaker: Speaker::Assistant, text: text(&message["content"]), calls_tools }];
    }
    let results = blocks.iter().filter(is("tool_result")).map(|block| Turn {
        speaker: Speaker::Other,
        text: text(&block["content"]),
        calls_tools: false,
    });
    let mut turns: Vec<Turn> = results.collect();
    let said = text(&message["content"]);
    if turns.is_empty() || !said.is_empty() {
        turns.push(Turn { speaker: Speaker::User, text: said, calls_tools: false });
    }
    turns
}

/// The blocks of a reply, each with what a stream begins it with and the deltas that fill it.
fn blocks(reply: &Reply) -> Vec<(Value, Value, Vec<Value>)> {
    let mut blocks = Vec::new();
    if !reply.thinking.is_empty() {
        let mut deltas = deltas(&reply.thinking, "thinking_delta", "thinking");
        deltas.push(json!({"type": "signature_delta", "signature": "scripted-signature"}));
        let begin = json!({"type": "thinking", "thinking": "", "signature": ""});
        let whole =
            json!({"type": "thinking", "thinking": reply.thinking, "signature": "scripted-signature"});
        blocks.push((whole, begin, deltas));
    }
    if !reply.text.is_empty() {
        let whole = json!({"type": "text", "text": reply.text});
        let begin = json!({"type": "text", "text": ""});
        blocks.push((whole, begin, deltas(&reply.text, "text_delta", "text")));
    }
    for call in &reply.calls {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let whole = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input});
        let begin = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        blocks.push((whole, begin, deltas(&call.arguments, "input_json_delta", "partial_json")));
    }
    blocks
}

fn deltas(text: &str, kind: &str, field: &str) -> Vec<Value> {
    pieces(text).into_iter().map(|piece| json!({"type": kind, field: piece})).collect()
}

fn frames(reply: &Reply) -> Vec<String> {
    let mut message = whole(reply);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let begin = json!({"type": "message_start", "message": message});
    let mut frames = vec![frame("message_start", &begin), frame("ping", &json!({"type": "ping"}))];
    for (index, (_, begin, deltas)) in blocks(reply).into_iter().enumerate() {
        let start = json!({"type": "content_block_start", "index": index, "content_block": begin});
        frames.push(frame("content_block_start", &start));
        frames.extend(deltas.into_iter().map(|delta| {
            let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
            frame("content_block_delta", &event)
        }));
        frames.push(frame("content_block_stop", &json!({"type": "content_block_stop", "index": index})));
    }
    let usage = json!({"output_tokens": reply.completion_tokens});
    let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    let end = json!({"type": "message_delta", "delta": delta, "usage": usage});
    frames.push(frame("message_delta", &end));
    frames.push(frame("message_stop", &json!({"type": "message_stop"})));
    frames
}

fn frame(event: &str, data: &Value) -> String {
    format!("event: {event}\ndata: {data}\n\n")
}

fn whole(reply: &Reply) -> Value {
    let content: Vec<Value> = blocks(reply).into_iter().map(|(whole, ..)| whole).collect();
    json!({
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted",
        "content": content, "stop_reason": stop_reason(reply), "stop_sequence": null,
        "usage": {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens},
    })
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn error(status: u16, text: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": text}})
}
