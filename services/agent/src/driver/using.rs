//! Has tool calls judged and run, and tells the run what came of them.

use domain::{CallId, Input, OutputStream, ToolCall, ToolResult};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    telemetry,
    tools::{Context, Running, Tools, fit},
};

/// Has the calls of a message judged.
pub(super) async fn plan(tools: Tools, calls: Vec<ToolCall>, context: Context, to: mpsc::Sender<Input>) {
    let plans = tools.plan(&calls, &context).await;
    // A run that has ended wants no input.
    let _ = to.send(Input::Planned(plans)).await;
}

/// Passes on what a tool prints, and then its result.
pub(super) async fn follow(
    mut running: Running,
    call: CallId,
    label: String,
    most_tokens: u64,
    to: mpsc::Sender<Input>,
) {
    let began = Instant::now();
    let (mut stdout, mut stderr) = (Utf8::default(), Utf8::default());
    while let Some((stream, bytes)) = running.output.recv().await {
        let decoder = match stream {
            OutputStream::Stdout => &mut stdout,
            OutputStream::Stderr => &mut stderr,
        };
        let text = decoder.decode(&bytes);
        if !text.is_empty() && to.send(Input::ToolOutput { call: call.clone(), stream, text }).await.is_err()
        {
            return;
        }
    }
    let result = running.result.await.unwrap_or_else(|_| ToolResult::error("The tool call was lost."));
    telemetry::tool_finished(&label, result.status, began.elapsed());
    let _ = to.send(Input::ToolFinished { call, result: fit(result, most_tokens) }).await;
}

/// Bytes to text, where a character may be split between two pieces. What is not UTF-8 is replaced.
#[derive(Default)]
struct Utf8 {
    rest: Vec<u8>,
}

impl Utf8 {
    fn decode(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - incomplete(&self.rest);
        let text = String::from_utf8_lossy(&self.rest[..whole]).into_owned();
        self.rest.drain(..whole);
        text
    }
}

/// Bytes at the end that begin a character and do not end it.
fn incomplete(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let width = match bytes[bytes.len() - back] {
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            0xF0..0xF8 => 4,
            0x80..0xC0 => continue,
            _ => 1,
        };
        return if width > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_survive_any_split() {
        let text = "aä€😀z";
        for split in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(split);
            let mut decoder = Utf8::default();
            assert_eq!(decoder.decode(left) + &decoder.decode(right), text, "split at {split}");
        }
        let mut decoder = Utf8::default();
        assert_eq!(
            decoder.decode(b"\xff\xfeok\x80\x80\x80\x80"),
            "\u{fffd}\u{fffd}ok\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
    }
}
