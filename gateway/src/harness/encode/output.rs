//! Results of tools, as the dialect shows them.

use domain::{ToolResult, ToolStatus};
use serde_json::{Value, json};

use super::agent::Called;
use crate::harness::events::{Denied, Output};

/// The tool whose results have a form of their own.
const BASH: &str = "bash";
/// Exit code of a command that did not come to its end.
const NO_EXIT: i32 = -1;

/// The result of a call that could run.
pub(super) fn of(called: &Called, result: ToolResult) -> Output {
    // A command that fails has told what there is to know all the same.
    let ran = called.call.name == BASH && result.elapsed.is_some();
    match result.status {
        ToolStatus::Error if !ran => {
            Output::Failed { error: result.error.unwrap_or_default(), context: result.data }
        }
        ToolStatus::Success | ToolStatus::NoData | ToolStatus::Error => {
            let view = if ran { Some(shell(called, &result)) } else { structured(&result.data) };
            let context = match result.error {
                Some(error) if result.data.is_empty() => error,
                Some(error) => format!("{}\n\n{error}", result.data),
                None => result.data,
            };
            Output::Done { context, result: view }
        }
    }
}

/// The result of a call that somebody did not allow.
pub(super) fn denied(result: ToolResult) -> Output {
    Output::Denied { status: Denied::Denied, reason: result.error.unwrap_or_default() }
}

fn shell(called: &Called, result: &ToolResult) -> Value {
    let code = result.return_code.unwrap_or(NO_EXIT);
    json!({"exitCode": code, "stdout": called.stdout, "stderr": called.stderr})
}

/// What a tool said, if that is an object or a list.
fn structured(data: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(data).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}
