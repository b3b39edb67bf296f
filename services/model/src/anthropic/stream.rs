//! Replies in the form of messages: the events of a stream, or one document.

use domain::{Thinking, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    draft::{Draft, DraftCall},
    failure::Failure,
};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: BlockDelta,
    },
    MessageDelta {
        delta: MessageDelta,
        usage: Option<Counts>,
    },
    MessageStop,
    /// A reply that was not streamed.
    Message(Message),
    Error {
        error: Value,
    },
    /// `ping`, `content_block_stop`, and what is invented later.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    #[serde(default)]
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        signature: Option<String>,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Map<String, Value>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

/// Counts are totals so far; those that an event leaves out keep their value.
#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

pub(super) fn read(data: &str, draft: &mut Draft) -> Result<(), Failure> {
    let event: Event = serde_json::from_str(data).map_err(|error| {
        Failure::malformed(format!("the model provider sent what is no event of a message: {error}"))
    })?;
    match event {
        Event::MessageStart { message } => {
            draft.id = message.id;
            count(message.usage, draft);
        }
        Event::ContentBlockStart { index, content_block } => begin(index, content_block, draft),
        Event::ContentBlockDelta { index, delta } => extend(index, delta, draft),
        Event::MessageDelta { delta, usage } => {
            stop(delta.stop_reason, draft);
            count(usage, draft);
        }
        Event::MessageStop => draft.ended = true,
        Event::Message(message) => {
            draft.id = message.id;
            (0..).zip(message.content).for_each(|(index, block)| begin(index, block, draft));
            stop(message.stop_reason, draft);
            count(message.usage, draft);
            draft.ended = true;
        }
        Event::Error { error } => return Err(Failure::from_event(&error)),
        Event::Other => {}
    }
    Ok(())
}

fn begin(index: u64, block: Block, draft: &mut Draft) {
    match block {
        Block::Text { text } => draft.text(&text),
        Block::Thinking { thinking, signature } => {
            let signature = signature.filter(|signature| !signature.is_empty());
            draft.begin_thinking(Thinking { signature, ..Thinking::default() });
            draft.thinking(&thinking);
        }
        Block::RedactedThinking { data } => {
            draft.begin_thinking(Thinking { redacted: Some(data), ..Thinking::default() });
        }
        Block::ToolUse { id, name, input } => {
            let arguments = if input.is_empty() { String::new() } else { Value::Object(input).to_string() };
            draft.calls().push(DraftCall { index: Some(index), id, name, arguments });
        }
        Block::Other => {}
    }
}

fn extend(index: u64, delta: BlockDelta, draft: &mut Draft) {
    match delta {
        BlockDelta::TextDelta { text } => draft.text(&text),
        BlockDelta::ThinkingDelta { thinking } => draft.thinking(&thinking),
        BlockDelta::SignatureDelta { signature } => draft.sign(&signature),
        BlockDelta::InputJsonDelta { partial_json } => {
            if let Some(call) = draft.calls().iter_mut().find(|call| call.index == Some(index)) {
                call.arguments.push_str(&partial_json);
            }
        }
        BlockDelta::Other => {}
    }
}

fn stop(reason: Option<String>, draft: &mut Draft) {
    let Some(reason) = reason else { return };
    draft.finish_reason = Some(match reason.as_str() {
        "end_turn" | "stop_sequence" => "stop".into(),
        "tool_use" => "tool_calls".into(),
        "max_tokens" | "model_context_window_exceeded" => "length".into(),
        "refusal" => "content_filter".into(),
        _ => reason,
    });
}

fn count(counts: Option<Counts>, draft: &mut Draft) {
    let Some(counts) = counts else { return };
    let before = draft.usage.unwrap_or_default();
    let cached = counts.cache_read_input_tokens.or(before.cached);
    let cache_creation = counts.cache_creation_input_tokens.or(before.cache_creation);
    let cached_before = before.cached.unwrap_or_default() + before.cache_creation.unwrap_or_default();
    let fresh = counts.input_tokens.unwrap_or(before.prompt.saturating_sub(cached_before));
    let cached_now = cached.unwrap_or_default().saturating_add(cache_creation.unwrap_or_default());
    draft.usage = Some(Usage {
        prompt: fresh.saturating_add(cached_now),
        completion: counts.output_tokens.unwrap_or(before.completion),
        cached,
        cache_creation,
        ..before
    });
}

#[cfg(test)]
mod tests {
    use domain::Part;
    use serde_json::json;

    use super::*;
    use crate::{Reply, Request, draft::Context};

    fn reply(events: &[Value]) -> Result<Reply, Failure> {
        let mut draft = Draft::default();
        events.iter().try_for_each(|event| read(&event.to_string(), &mut draft))?;
        assert!(draft.ended);
        draft.into_reply(Context::of(&Request::default()))
    }

    #[test]
    fn a_stream_of_all_blocks_is_one_message() {
        let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta =
            |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let input =
            |index, json: &str| delta(index, json!({"type": "input_json_delta", "partial_json": json}));
        let reply = reply(&[
            json!({"type": "message_start", "message": {"content": [], "usage": {
                "input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
                "output_tokens": 1,
            }}}),
            json!({"type": "ping"}),
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "sig"})),
            start(1, json!({"type": "redacted_thinking", "data": "hidden"})),
            start(2, json!({"type": "text", "text": ""})),
            delta(2, json!({"type": "text_delta", "text": "hi"})),
            start(3, json!({"type": "tool_use", "id": "a", "name": "x", "input": {}})),
            start(4, json!({"type": "tool_use", "id": "b", "name": "y", "input": {}})),
            input(4, r#"{"n": "#),
            input(4, "2}"),
            json!({"type": "content_block_stop", "index": 4}),
            json!({"type": "something_new", "index": 5}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ])
        .unwrap();
        let signed = Thinking { text: "hm".into(), signature: Some("sig".into()), redacted: None };
        let hidden = Thinking { redacted: Some("hidden".into()), ..Thinking::default() };
        let parts = [Part::Thinking(signed), Part::Thinking(hidden), Part::Text("hi".into())];
        assert_eq!(reply.message.parts, parts);
        let arguments: Vec<_> = reply.calls().iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(arguments, ["{}", r#"{"n":2}"#]);
        let usage = Usage {
            prompt: 125,
            completion: 7,
            cached: Some(100),
            cache_creation: Some(20),
            ..Usage::default()
        };
        assert_eq!((reply.usage, reply.finish_reason.as_str()), (usage, "tool_calls"));
    }

    #[test]
    fn errors_and_nonsense_are_errors() {
        let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        assert_eq!(reply(&[overloaded]), Err(Failure::unavailable("busy")));
        let failure = reply(&[json!({"type": "content_block_delta"})]).unwrap_err();
        assert_eq!(failure.error.kind(), "malformed");
    }
}
