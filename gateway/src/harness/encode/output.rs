//! Results of tools, as the dialect shows them.

use domain::{Document, Image, ToolCall, ToolResult, ToolStatus};
use serde_json::{Value, json};

use crate::harness::events::{Denied, Output};

/// The tools whose results have a form of their own.
const COMMANDS: [&str; 2] = ["bash", "exec"];
/// Exit code of a command that did not come to its end.
const NO_EXIT: i32 = -1;

/// The result of a call that could run.
pub(super) fn of(call: &ToolCall, result: ToolResult) -> Output {
    let ran = COMMANDS.contains(&call.name.as_str()) && result.elapsed.is_some();
    match result.status {
        ToolStatus::Error if ran => {
            let code = result.return_code.unwrap_or(NO_EXIT);
            let view = json!({"exitCode": code, "stdout": "", "stderr": ""});
            Output::Done { context: result.error.unwrap_or_default(), result: Some(view) }
        }
        ToolStatus::Error => Output::Failed { error: result.error.unwrap_or_default(), context: result.data },
        ToolStatus::Success | ToolStatus::NoData => {
            let view = structured(&result.data).or_else(|| shown(&result.images, &result.documents));
            let sections = view.as_ref().filter(|_| ran).and_then(sections);
            Output::Done { context: sections.unwrap_or(result.data), result: view }
        }
    }
}

/// A picture or a document that a tool has shown, as clients send them, too.
fn shown(images: &[Image], documents: &[Document]) -> Option<Value> {
    let part =
        |kind, media_type: &str, data: &str| json!({"type": kind, "mediaType": media_type, "data": data});
    let image = |image: &Image| {
        let (head, data) = image.url.strip_prefix("data:")?.split_once(',')?;
        Some(part("image", head.strip_suffix(";base64")?, data))
    };
    let document = |document: &Document| part("document", &document.media_type, &document.data);
    images.iter().find_map(image).or_else(|| documents.first().map(document))
}

/// The result of a call that somebody did not allow.
pub(super) fn denied(result: ToolResult) -> Output {
    Output::Denied { status: Denied::Denied, reason: result.error.unwrap_or_default() }
}

/// What a command printed, for reading.
fn sections(view: &Value) -> Option<String> {
    let code = view["exitCode"].as_i64()?;
    let streams = ["stdout", "stderr"].map(|name| (name, view[name].as_str().unwrap_or_default()));
    let printed = streams.iter().filter(|(_, text)| !text.is_empty());
    let mut sections: Vec<_> = printed.map(|(name, text)| format!("{name}:\n{text}")).collect();
    sections.push(format!("exit code: {code}"));
    Some(sections.join("\n"))
}

/// What a tool said, if that is an object or a list.
fn structured(data: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(data).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}
