//! The conversation in the words of sessions, and back.

use domain::{Image, Part, Role, Thinking, Totals};
use serde_json::{Value, json};
use wire::session::{
    ContentPart, Controls, ImagePart, Message, ToolCall, ToolResultPart, Usage, content_part::Part as Piece,
};

use super::ids;

/// Characters of a preview.
const PREVIEW: usize = 200;

/// The beginning of a text; `None` of an empty one.
pub(super) fn preview(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.chars().take(PREVIEW).collect())
}

pub(super) fn text(text: impl Into<String>) -> ContentPart {
    ContentPart { part: Some(Piece::Text(text.into())) }
}

pub(super) fn call(call: &domain::ToolCall) -> ToolCall {
    ToolCall {
        id: call.id.as_str().to_owned(),
        name: call.name.clone(),
        arguments_json: call.arguments.clone(),
    }
}

/// The tokens of one model call.
pub(super) fn usage(usage: domain::Usage) -> Usage {
    let domain::Usage { prompt, completion, cached, cache_creation, reasoning: _, cost_usd } = usage;
    counted(prompt, completion, cached, cache_creation, cost_usd)
}

/// The tokens of a run.
pub(super) fn totals(totals: Totals) -> Usage {
    let counted =
        counted(totals.prompt, totals.completion, totals.cached, totals.cache_creation, totals.cost_usd);
    Usage { effective_cost_usd: counted.estimated_cost_usd, ..counted }
}

fn counted(
    prompt: u64,
    completion: u64,
    cached: Option<u64>,
    cache_creation: Option<u64>,
    cost_usd: f64,
) -> Usage {
    let beside = cached.unwrap_or_default().saturating_add(cache_creation.unwrap_or_default());
    Usage {
        input_tokens: prompt.saturating_sub(beside),
        output_tokens: completion,
        cache_read_tokens: cached,
        cache_creation_tokens: cache_creation,
        estimated_cost_usd: (cost_usd > 0.0).then_some(cost_usd),
        ..Usage::default()
    }
}

/// Both together.
pub(super) fn sum(left: Usage, right: Usage) -> Usage {
    let either = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (left, right) => left.or(right),
    };
    let cost = match (left.estimated_cost_usd, right.estimated_cost_usd) {
        (Some(left), Some(right)) => Some(left + right),
        (left, right) => left.or(right),
    };
    Usage {
        input_tokens: left.input_tokens.saturating_add(right.input_tokens),
        output_tokens: left.output_tokens.saturating_add(right.output_tokens),
        cache_read_tokens: either(left.cache_read_tokens, right.cache_read_tokens),
        cache_creation_tokens: either(left.cache_creation_tokens, right.cache_creation_tokens),
        estimated_cost_usd: cost,
        actual_cost_usd: None,
        effective_cost_usd: cost,
    }
}

/// A message of the agent.
pub(super) fn spoken(id: String, time: domain::Timestamp, model: &str, said: &domain::Message) -> Message {
    let words = said.joined_text();
    let words = (!words.is_empty()).then(|| text(words));
    let calls = said.tool_calls.iter().map(|asked| ContentPart { part: Some(Piece::ToolCall(call(asked))) });
    let phase = if said.tool_calls.is_empty() { "final_answer" } else { "commentary" };
    Message {
        id,
        role: "agent".to_owned(),
        content: words.into_iter().chain(calls).collect(),
        created_at: Some(wire::time(time)),
        phase: Some(phase.to_owned()),
        thinking: said.joined_thinking(),
        metadata_json: Some(json!({ "model": model }).to_string()),
        ..Message::default()
    }
}

/// A message of the conversation as the model was told it.
pub(super) fn told(seed: &str, time: domain::Timestamp, message: &domain::Message) -> Message {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "agent",
        Role::Tool => "tool_result",
    };
    let content = match &message.answers {
        Some((id, _)) => vec![ContentPart {
            part: Some(Piece::ToolResult(ToolResultPart {
                tool_call_id: id.as_str().to_owned(),
                result_json: Some(Value::String(message.joined_text()).to_string()),
                error: None,
            })),
        }],
        None => {
            let parts = message.parts.iter().filter_map(part);
            let calls = message.tool_calls.iter().map(|asked| Piece::ToolCall(call(asked)));
            parts.chain(calls).map(|piece| ContentPart { part: Some(piece) }).collect()
        }
    };
    Message {
        id: ids::named("message_", seed),
        role: role.to_owned(),
        content,
        created_at: Some(wire::time(time)),
        ..Message::default()
    }
}

fn part(part: &Part) -> Option<Piece> {
    match part {
        Part::Text(text) => Some(Piece::Text(text.clone())),
        Part::Image(image) => {
            Some(Piece::Image(ImagePart { url: Some(image.url.clone()), ..ImagePart::default() }))
        }
        Part::Document(_) | Part::Thinking(Thinking { .. }) => None,
    }
}

/// The text of a message, its parts on lines of their own.
pub(super) fn words(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match &part.part {
        Some(Piece::Text(text)) => Some(text.as_str()),
        Some(Piece::Image(_) | Piece::ImageFile(_) | Piece::ToolCall(_) | Piece::ToolResult(_)) | None => {
            None
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

pub(super) fn image(part: &ImagePart) -> Image {
    let kind = part.media_type.as_deref().unwrap_or("image/png");
    let url = match (&part.url, &part.base64) {
        (Some(url), _) => url.clone(),
        (None, Some(data)) => format!("data:{kind};base64,{data}"),
        (None, None) => String::new(),
    };
    Image { url, detail: None, format: part.media_type.clone() }
}

/// The hints that hold for a message: the session's, each replaced by the message's of the same name.
pub(super) fn hints(session: &str, controls: Option<&Controls>) -> Value {
    let object = |json: &str| match serde_json::from_str(json) {
        Ok(Value::Object(hints)) => hints,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let mut hints = object(session);
    if let Some(own) = controls.and_then(|controls| controls.hints_json.as_deref()) {
        hints.extend(object(own));
    }
    Value::Object(hints)
}
