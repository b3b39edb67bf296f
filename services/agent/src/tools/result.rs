//! Tool results as a run takes them.

use domain::ToolResult;
use wire::executor;

/// What an executor returned; a result that makes no sense is an error result.
pub(super) fn from_executor(finished: executor::Finished) -> ToolResult {
    finished.try_into().unwrap_or_else(|malformed: wire::Malformed| {
        ToolResult::error(format!("The executor's result cannot be read: {malformed}"))
    })
}
