//! Has tool calls judged and run, and tells the run what came of them.

use std::time::Duration;

use domain::{CallId, Input, Settlement, ToolCall, ToolResult};
use tokio::time::{Instant, sleep};

use super::inputs::To;
use crate::{
    telemetry,
    tools::{Context, Running, Tools},
};

/// Has the calls of a message judged.
pub(super) async fn plan(tools: Tools, calls: Vec<ToolCall>, context: Context, to: To) {
    let plans = tools.plan(&calls, &context).await;
    // A run that has ended wants no input.
    let _ = to.send(Input::Planned(plans)).await;
}

/// Ends the wait for the client's word about a call.
pub(super) async fn expire(call: CallId, time: Duration, to: To) {
    sleep(time).await;
    let _ = to.send(Input::Settled { call, settlement: Settlement::Expired }).await;
}

/// Passes on what a tool prints, and then its result.
pub(super) async fn follow(tools: Tools, mut running: Running, call: CallId, label: String, to: To) {
    let began = Instant::now();
    while let Some((stream, bytes)) = running.output.recv().await {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if to.send(Input::ToolOutput { call: call.clone(), stream, text }).await.is_err() {
            return;
        }
    }
    let result = running.result.await.unwrap_or_else(|_| ToolResult::error("The tool call was lost."));
    telemetry::tool_finished(&label, result.status, began.elapsed());
    let result = tools.fit(&call, result);
    let _ = to.send(Input::ToolFinished { call, result }).await;
}
