//! The events of the dialect.

use serde::Serialize;
use serde_json::Value;

use crate::sse::Frame;

/// Whom an event is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Of {
    pub(super) run_id: String,
    pub(super) agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_id: Option<String>,
}

/// An event. What is `None` is left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Event {
    Connected {
        session_id: String,
    },
    HarnessStart {
        #[serde(flatten)]
        of: Of,
        /// Of a subagent.
        #[serde(skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
        max_iterations: u32,
    },
    Text {
        #[serde(flatten)]
        of: Of,
        id: String,
        content: String,
    },
    Reasoning {
        #[serde(flatten)]
        of: Of,
        id: String,
        content: String,
    },
    ToolCall {
        #[serde(flatten)]
        of: Of,
        id: String,
        name: String,
        input: Value,
    },
    ToolProgress {
        #[serde(flatten)]
        of: Of,
        id: String,
        tool_call_id: String,
        name: String,
        content: Progress,
    },
    ToolResult {
        #[serde(flatten)]
        of: Of,
        id: String,
        name: String,
        output: Output,
    },
    Relay {
        #[serde(flatten)]
        of: Of,
        id: String,
        kind: RelayKind,
        tool_call_id: String,
        tool: String,
        params: Value,
    },
    Usage {
        #[serde(flatten)]
        of: Of,
        #[serde(flatten)]
        tokens: Tokens,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_read_tokens: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_creation_tokens: Option<u64>,
    },
    HarnessEnd {
        #[serde(flatten)]
        of: Of,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        iterations: u32,
        total_usage: Tokens,
    },
    ReplInput {
        #[serde(flatten)]
        of: Of,
        id: String,
        code: String,
        iteration: u32,
    },
    ReplProgress {
        #[serde(flatten)]
        of: Of,
        id: String,
        chunk: String,
        stream: &'static str,
    },
    ReplOutput {
        #[serde(flatten)]
        of: Of,
        id: String,
        stdout: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Whether it gave the answer.
        done: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        truncated: bool,
    },
    Error {
        #[serde(flatten)]
        of: Option<Of>,
        message: String,
    },
}

/// Something that a tool printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Progress {
    /// `stdout` or `stderr`.
    pub(super) channel: &'static str,
    pub(super) data: String,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Output {
    Done {
        /// What the model reads.
        context: String,
        /// The same for programs.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    Failed {
        error: String,
        /// What there was to read until then.
        #[serde(skip_serializing_if = "String::is_empty")]
        context: String,
    },
    Denied {
        status: Denied,
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Denied {
    Denied,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RelayKind {
    Permission,
}

/// Why a run ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    Final,
    MaxIterations,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Self::Connected { .. } => "connected",
            Self::HarnessStart { .. } => "harness_start",
            Self::Text { .. } => "text",
            Self::Reasoning { .. } => "reasoning",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolProgress { .. } => "tool_progress",
            Self::ToolResult { .. } => "tool_result",
            Self::Relay { .. } => "relay",
            Self::Usage { .. } => "usage",
            Self::HarnessEnd { .. } => "harness_end",
            Self::ReplInput { .. } => "repl_input",
            Self::ReplProgress { .. } => "repl_progress",
            Self::ReplOutput { .. } => "repl_output",
            Self::Error { .. } => "error",
        }
    }

    pub(super) fn frame(&self) -> Frame {
        // Structs of texts, numbers and JSON always have a JSON form.
        Frame { event: self.name(), data: serde_json::to_string(self).unwrap_or_default() }
    }
}
