//! The sentences that the machine itself says, to models and to people.

use crate::{Ceiling, ToolCall, ToolResult};

/// How a model reads a tool's result. The second line has HolmesGPT's form: its clients look for it.
pub(super) fn tool_message(call: &ToolCall, result: &ToolResult) -> String {
    let head = format!(
        "Called with {}. Its output follows.\n\
         tool_call_metadata={{\"tool_name\": {}, \"tool_call_id\": {}}}",
        call.arguments,
        json_string(&call.name),
        json_string(call.id.as_str()),
    );
    match &result.error {
        Some(error) => format!("{head}{error}:\n\n{}", result.data),
        None => format!("{head}{}", result.data),
    }
}

/// A JSON string literal.
fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            control if control.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Tells the model that this is its last word.
pub(super) fn answer_now(ceiling: Ceiling) -> String {
    format!(
        "This run has reached {ceiling}, so no more tools can be called. Answer the question now with what has \
         been found. Say plainly what could not be checked."
    )
}

/// Tells the model that its answer must have the form that was asked for.
pub(super) fn answer_in_form(draft: &str) -> String {
    let draft = match draft.trim() {
        "" => String::new(),
        draft => format!("\n\nThis was your answer:\n\n{draft}"),
    };
    format!(
        "Give your answer now, in exactly the JSON form that was asked for, and nothing else: no text around it \
         and no code fence.{draft}"
    )
}

/// The answer of a run whose model had nothing to say when it had to.
pub(super) fn found_nothing_to_say(ceiling: &str, tool_calls: u32) -> String {
    format!(
        "The investigation ended early ({ceiling}) after {tool_calls} tool calls, and the model gave no \
         conclusion. The results of the calls are part of this conversation: ask again to go on from there."
    )
}

pub(super) const REPEATED: &str = "This call was already made in this conversation with the same arguments, and \
    its result has not changed. Do not repeat it: use the earlier result, or look elsewhere.";

pub(super) const TOO_MANY_CALLS: &str =
    "Not run: the limit of tool calls of this run is reached. Answer with what has been found.";

pub(super) const NOT_PLANNED: &str = "Not run: the tool's owner did not answer.";

pub(super) const OUT_OF_TIME: &str = "Stopped: the time limit of this run is reached.";

pub(super) const STOPPED: &str = "Stopped: the run was cancelled.";

pub(super) const ENDED: &str = "Stopped: the run ended.";

pub(super) const NOT_IN_FORM: &str = "the answer does not have the form that was asked for";

pub(super) const NEVER_IN_FORM: &str =
    "The model did not give its answer in the form that `response_format` asks for, also when asked again.";

pub(super) const NO_ANSWER_IN_TIME: &str = "The run took too long, and the model gave no answer in time.";
