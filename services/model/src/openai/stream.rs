//! Replies in the form of chat completions: the chunks of a stream, or one document with the same members.

use domain::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    draft::{Draft, DraftCall},
    failure::Failure,
};

#[derive(Deserialize)]
struct Chunk {
    /// A text, where servers do as they should.
    id: Option<Value>,
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Piece>,
    message: Option<Piece>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    content: Option<Content>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    text: Option<String>,
    thinking: Option<Content>,
}

#[derive(Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Default, Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

pub(super) fn read(data: &str, draft: &mut Draft) -> Result<(), Failure> {
    if data == "[DONE]" {
        draft.ended = true;
        return Ok(());
    }
    let chunk: Chunk = serde_json::from_str(data).map_err(|error| {
        Failure::malformed(format!("the model provider sent what is no chat completion: {error}"))
    })?;
    if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
        return Err(Failure::from_event(&error));
    }
    if let Some(id) = chunk.id.as_ref().and_then(Value::as_str).filter(|id| !id.is_empty()) {
        draft.id.get_or_insert_with(|| id.to_owned());
    }
    for choice in chunk.choices.into_iter().flatten() {
        if let Some(piece) = choice.delta.or(choice.message) {
            read_piece(piece, draft);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            draft.finish_reason = Some(reason);
        }
    }
    if let Some(counts) = chunk.usage {
        draft.usage = Some(usage(counts));
    }
    Ok(())
}

fn read_piece(piece: Piece, draft: &mut Draft) {
    draft.thinking(&piece.reasoning_content.or(piece.reasoning).unwrap_or_default());
    match piece.content {
        None => {}
        Some(Content::Text(text)) => draft.text(&text),
        Some(Content::Parts(parts)) => parts.into_iter().for_each(|part| {
            draft.thinking(&part.thinking.map(joined).unwrap_or_default());
            draft.text(&part.text.unwrap_or_default());
        }),
    }
    draft.text(&piece.refusal.unwrap_or_default());
    for call in piece.tool_calls.into_iter().flatten() {
        read_call(call, draft.calls());
    }
}

fn joined(content: Content) -> String {
    match content {
        Content::Text(text) => text,
        Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
    }
}

fn read_call(piece: CallPiece, calls: &mut Vec<DraftCall>) {
    let id = piece.id.unwrap_or_default();
    let function = piece.function.unwrap_or_default();
    let name = function.name.unwrap_or_default();
    let at = continued(piece.index, &id, &name, calls).unwrap_or_else(|| {
        calls.push(DraftCall { index: piece.index, ..DraftCall::default() });
        calls.len() - 1
    });
    let call = &mut calls[at];
    if call.id.is_empty() {
        call.id = id;
    }
    if call.name.is_empty() {
        call.name = name;
    }
    match function.arguments {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => call.arguments.push_str(&text),
        Some(value) => call.arguments = value.to_string(),
    }
}

/// The call that a piece continues. The index tells, but some servers send none, or 0 for all calls: then the id
/// tells, and without ids a new name begins a new call.
fn continued(index: Option<u64>, id: &str, name: &str, calls: &[DraftCall]) -> Option<usize> {
    let other_id = |call: &DraftCall| !id.is_empty() && !call.id.is_empty() && call.id != id;
    let at = match index {
        Some(_) => calls.iter().rposition(|call| call.index == index)?,
        None if !id.is_empty() => return calls.iter().rposition(|call| call.id == id),
        None if !name.is_empty() => return None,
        None => calls.len().checked_sub(1)?,
    };
    (!other_id(&calls[at])).then_some(at)
}

fn usage(counts: Counts) -> Usage {
    Usage {
        prompt: counts.prompt_tokens.unwrap_or_default(),
        completion: counts.completion_tokens.unwrap_or_default(),
        cached: counts.prompt_tokens_details.and_then(|details| details.cached_tokens),
        reasoning: counts.completion_tokens_details.and_then(|details| details.reasoning_tokens),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
