//! Has tool calls judged and run, and tells the run what came of them.

use std::{sync::Arc, time::Duration};

use domain::{CallId, Input, Settlement, ToolCall, ToolResult};
use tokio::time::{Instant, sleep};

use super::inputs::{Ended, To};
use crate::{
    telemetry,
    tools::{Answerer, Context, Interpreter, Running, Summarizer, Tools, Wants, said},
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

/// How the model reads the results of a tool.
pub(super) struct Reading {
    pub(super) summarizer: Option<Arc<Summarizer>>,
    pub(super) sees_images: bool,
}

/// Passes on what a call prints, and where it goes, until it prints no more.
async fn pass_on(running: &mut Running, call: &CallId, to: &To) -> Result<(), Ended> {
    loop {
        tokio::select! {
            printed = running.output.recv() => {
                let Some((stream, bytes)) = printed else { return Ok(()) };
                let text = String::from_utf8_lossy(&bytes).into_owned();
                to.send(Input::ToolOutput { call: call.clone(), stream, text }).await?;
            }
            Some(placing) = running.placings.recv() => to.place(call.clone(), placing).await?,
        }
    }
}

/// Passes on what a tool prints, and then its result, or a summary of it.
pub(super) async fn follow(
    tools: Tools,
    mut running: Running,
    call: CallId,
    label: String,
    reading: Reading,
    to: To,
) {
    let began = Instant::now();
    if pass_on(&mut running, &call, &to).await.is_err() {
        return;
    }
    let result = running.result.await.unwrap_or_else(|_| ToolResult::error("The tool call was lost."));
    telemetry::tool_finished(&label, result.status, began.elapsed());
    let result = seen(tools.shown(&label, result), reading.sees_images);
    let result = match reading.summarizer {
        Some(summarizer) => summarized(&tools, &summarizer, &call, result, &to).await,
        None => result,
    };
    let result = tools.fit(&call, result);
    let _ = to.send(Input::ToolFinished { call, result }).await;
}

/// Leaves out images for a model that sees none.
fn seen(mut result: ToolResult, sees_images: bool) -> ToolResult {
    if !sees_images && !result.images.is_empty() {
        result.data.push_str("\n[The model sees no images: they are left out.]");
        result.images.clear();
    }
    result
}

async fn summarized(
    tools: &Tools,
    summarizer: &Summarizer,
    call: &CallId,
    result: ToolResult,
    to: &To,
) -> ToolResult {
    let Some(summary) = summarizer.summarize(&result).await else { return result };
    // A run that has ended wants no input.
    let _ = to.send(Input::Asked(summary.usage)).await;
    tools.shorten(call, result, &summary.text)
}

/// The same for a command that code waits for.
pub(super) async fn follow_command(
    tools: Tools,
    mut running: Running,
    call: CallId,
    answerer: Answerer,
    to: To,
) {
    if pass_on(&mut running, &call, &to).await.is_err() {
        return;
    }
    let result = running.result.await.unwrap_or_else(|_| ToolResult::error("The command was lost."));
    let finished = Input::ToolFinished { call: call.clone(), result: tools.fit(&call, result.clone()) };
    // A run that has ended wants no input.
    let _ = to.send(finished).await;
    answerer.give(said(result)).await;
}

/// The same for code, which also asks.
pub(super) async fn follow_code(mut running: Running, call: CallId, interpreter: Interpreter, to: To) {
    loop {
        tokio::select! {
            printed = running.output.recv() => {
                let Some((stream, bytes)) = printed else { break };
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if to.send(Input::ToolOutput { call: call.clone(), stream, text }).await.is_err() {
                    return;
                }
            }
            Some(question) = running.questions.recv() => match &question.wants {
                Wants::Model { .. } | Wants::Command(_) | Wants::Judged { .. } => {
                    if to.ask(call.clone(), question).await.is_err() {
                        return;
                    }
                }
                Wants::Unknown(what) => {
                    let why = format!("there is no `{what}`");
                    question.answerer.give(Err(why)).await;
                }
            },
            Some(placing) = running.placings.recv() => {
                if to.place(call.clone(), placing).await.is_err() {
                    return;
                }
            }
        }
    }
    let result = running.result.await.unwrap_or_else(|_| ToolResult::error("The code was lost."));
    let output = interpreter.output(result);
    // A run that has ended wants no input.
    let _ = to.send(Input::CodeEnded { call, output }).await;
}
