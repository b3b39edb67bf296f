//! `read_tool_result`: results that were cut or summarised are kept whole for their run, and the model reads on in them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::{CallId, ToolCall, ToolPlan, ToolResult, ToolStatus, ToolVerdict, tokens};
use model::ToolSpec;
use serde::Deserialize;
use serde_json::json;

pub(super) const TOOLSET: &str = "results";
const NAME: &str = "read_tool_result";
/// Bytes that are kept for one run.
const MOST_KEPT: usize = 16 << 20;
/// Tokens of a page that are left for what is said about it.
const FOR_THE_HINT: u64 = 100;
/// Stands where a result was cut.
const MARKER: &str = "\n\n[TRUNCATED]";

/// The whole results of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptResults {
    /// Tokens that a result may take of the model's window.
    most: u64,
    texts: Arc<Mutex<Texts>>,
}

#[derive(Debug, Default)]
struct Texts {
    by_call: HashMap<CallId, Arc<str>>,
    bytes: usize,
}

#[derive(Deserialize)]
struct Arguments {
    tool_call_id: String,
    #[serde(default)]
    offset: usize,
}

/// A part of a result.
struct Page {
    data: String,
    left: u64,
}

impl KeptResults {
    /// Nothing yet, for a run whose results may have `most` tokens each.
    pub(super) fn new(most: u64) -> Self {
        Self { most, texts: Arc::default() }
    }

    /// As models see it.
    pub(super) fn spec() -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Reads on in an earlier tool result that was too long and ends with [TRUNCATED], or reads \
                          one that was summarised ([SUMMARY]). Where a narrower query would do, prefer that."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "tool_call_id": {"type": "string", "description": "The id of the call whose result it is."},
                    "offset": {"type": "integer", "minimum": 0, "description": "The byte to read on from."},
                },
                "required": ["tool_call_id", "offset"],
                "additionalProperties": false,
            }),
        }
    }

    pub(super) fn owns(&self, call: &ToolCall) -> bool {
        call.name == NAME
    }

    pub(super) fn plan(&self, call: &ToolCall) -> ToolPlan {
        let (description, verdict) = match self.find(call) {
            Ok((id, offset, _)) => {
                (format!("Read the result of {id} from byte {offset}"), ToolVerdict::Allow)
            }
            Err(why) => ("Read a result".to_owned(), ToolVerdict::Refuse(why)),
        };
        ToolPlan::own(call, description, Some(TOOLSET), verdict)
    }

    pub(super) fn run(&self, call: &ToolCall) -> ToolResult {
        let (id, offset, text) = match self.find(call) {
            Ok(found) => found,
            Err(why) => return ToolResult::error(why),
        };
        let Page { data, left } = page(&text, &id, offset, self.most);
        ToolResult {
            status: ToolStatus::Success,
            data,
            error: None,
            elapsed: Some(Duration::ZERO),
            omitted_bytes: left,
            ..ToolResult::error("")
        }
    }

    /// Cuts a result that would take too much of the model's window, and keeps it whole.
    pub(super) fn fit(&self, call: &CallId, mut result: ToolResult) -> ToolResult {
        if tokens::of_text(&result.data) <= self.most {
            return result;
        }
        let Page { data, left } = match self.keep(call, &result.data) {
            Some(whole) => page(&whole, call, 0, self.most),
            None => {
                let cut = tokens::fitting(&result.data, self.most);
                let left = (result.data.len() - cut) as u64;
                Page { data: format!("{}{MARKER}", &result.data[..cut]), left }
            }
        };
        result.data = data;
        result.omitted_bytes = result.omitted_bytes.saturating_add(left);
        result
    }

    /// A summary in the place of a result, which is kept whole. One that is not shorter, or too long itself, is no use.
    pub(super) fn shorten(&self, call: &CallId, result: ToolResult, summary: &str) -> ToolResult {
        let how = json!({"tool_call_id": call.as_str(), "offset": 0});
        let data = format!(
            "{summary}\n\n[SUMMARY]\nThis is a summary of {} bytes. To read the output itself, call {NAME} with {how}.",
            result.data.len()
        );
        let helps = !summary.is_empty() && data.len() < result.data.len();
        if !helps || tokens::of_text(&data) > self.most || self.keep(call, &result.data).is_none() {
            return result;
        }
        ToolResult { data, ..result }
    }

    /// Keeps a text if there is room for it.
    fn keep(&self, call: &CallId, text: &str) -> Option<Arc<str>> {
        // Nothing in here panics half-way through a change.
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = texts.bytes.saturating_add(text.len());
        if bytes > MOST_KEPT {
            return None;
        }
        let text: Arc<str> = text.into();
        texts.bytes = bytes;
        texts.by_call.insert(call.clone(), Arc::clone(&text));
        Some(text)
    }

    fn find(&self, call: &ToolCall) -> Result<(CallId, usize, Arc<str>), String> {
        let Arguments { tool_call_id, offset } = serde_json::from_str(&call.arguments)
            .map_err(|error| format!("The arguments cannot be read: {error}"))?;
        let id = CallId::new(tool_call_id);
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(text) = texts.by_call.get(&id) else {
            return Err(format!(
                "No result of a call {id} is kept: only results that were cut or summarised can be read on."
            ));
        };
        if offset >= text.len() {
            return Err(format!(
                "The result of {id} has {} bytes: there is nothing at {offset}.",
                text.len()
            ));
        }
        Ok((id, offset, Arc::clone(text)))
    }
}

/// The part of a text from a byte on that fits, with how to read on.
fn page(text: &str, id: &CallId, offset: usize, most: u64) -> Page {
    let start = text.floor_char_boundary(offset);
    let rest = &text[start..];
    if tokens::of_text(rest) <= most {
        return Page { data: rest.to_owned(), left: 0 };
    }
    let room = most - FOR_THE_HINT.min(most / 2);
    // A page that ends where it begins would never end.
    let cut = tokens::fitting(rest, room).max(rest.ceil_char_boundary(1));
    let (next, total) = (start + cut, text.len());
    let how = json!({"tool_call_id": id.as_str(), "offset": next});
    let data = format!(
        "{}{MARKER}\nThese are the bytes from {start} to {next} of {total}. To read on, call {NAME} with {how}.",
        &rest[..cut]
    );
    Page { data, left: (total - next) as u64 }
}

#[cfg(test)]
mod tests;
