//! The events of the dialect, field by field.

use std::time::Duration;

use domain::{Approval, ContextSize, Image, RunStarted, ToolCall, ToolStatus, Totals, UsageReported, tokens};
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::sse::Frame;

use super::{
    approval::PendingApproval,
    compaction::{Compacted, CompactionStart},
    history::Outgoing,
};

/// What the original calls the form of its tool results.
const RESULT_SCHEMA: &str = "robusta:v1.0.0";

const SUCCESS: &str = "success";
/// The name of the event that ends an answer.
pub(super) const ANSWER_END: &str = "ai_answer_end";
/// Stands where a result was cut.
const CUT_MARK: &str = "[TRUNCATED]";

/// An event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Event {
    StartToolCalling(StartToolCalling),
    ToolCallingResult(Box<ToolCallingResult>),
    AiMessage(AiMessage),
    Notice(Notice),
    TokenCount(TokenCount),
    CompactionStart(CompactionStart),
    Compacted(Box<Compacted>),
    AiAnswerEnd(Box<AiAnswerEnd>),
    ApprovalRequired(Box<ApprovalRequired>),
    Error(ErrorEvent),
}

impl Event {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::StartToolCalling(_) => "start_tool_calling",
            Self::ToolCallingResult(_) => "tool_calling_result",
            Self::AiMessage(_) | Self::Notice(_) => "ai_message",
            Self::TokenCount(_) => "token_count",
            Self::CompactionStart(_) => "conversation_history_compaction_start",
            Self::Compacted(_) => "conversation_history_compacted",
            Self::AiAnswerEnd(_) => ANSWER_END,
            Self::ApprovalRequired(_) => "approval_required",
            Self::Error(_) => "error",
        }
    }

    pub(super) fn frame(&self) -> Frame {
        Frame { event: self.name(), data: json(self) }
    }
}

/// The text of a plain struct with string keys, which cannot fail.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[derive(Debug, Serialize)]
pub(crate) struct StartToolCalling {
    pub(crate) tool_name: String,
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) params: Box<RawValue>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolCallingResult {
    pub(crate) tool_call_id: String,
    pub(crate) tool_name: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) role: &'static str,
    /// Null if the client does not want it.
    pub(crate) result: Option<ToolResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) toolset_name: Option<String>,
}

/// What a tool returned. `url` and `icon_url` are always null: no tool here has any.
#[derive(Debug, Serialize)]
pub(crate) struct ToolResult {
    schema_version: &'static str,
    status: &'static str,
    error: Option<String>,
    return_code: Option<i32>,
    data: String,
    images: Option<Vec<Picture>>,
    url: Option<()>,
    invocation: Option<String>,
    params: Box<RawValue>,
    icon_url: Option<()>,
    elapsed_seconds: Option<f64>,
}

/// An image of a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Picture {
    /// In base64.
    data: String,
    mime_type: String,
}

impl Picture {
    /// Images of results are inline.
    fn new(image: &Image) -> Option<Self> {
        let (mime_type, data) = image.url.strip_prefix("data:")?.split_once(";base64,")?;
        Some(Self { data: data.to_owned(), mime_type: mime_type.to_owned() })
    }
}

impl ToolResult {
    /// Its first picture in PNG, in base64.
    pub(crate) fn png(&self) -> Option<&str> {
        let mut pictures = self.images.iter().flatten();
        pictures.find(|picture| picture.mime_type == "image/png").map(|picture| picture.data.as_str())
    }

    /// How the call ended, what it returned, and what went wrong.
    pub(crate) fn into_parts(self) -> (&'static str, String, Option<String>) {
        (self.status, self.data, self.error)
    }

    /// The arguments of a call that went well.
    pub(super) fn successful_params(&self) -> Option<&RawValue> {
        (self.status == SUCCESS).then_some(&*self.params)
    }

    /// The result of a call that waits for a person.
    pub(super) fn waiting(approval: &Approval, params: Box<RawValue>) -> Self {
        let command = Some(approval.command.clone()).filter(|command| !command.is_empty());
        let result =
            domain::ToolResult { invocation: command, ..domain::ToolResult::error(approval.reason.clone()) };
        Self { status: "approval_required", ..Self::new(result, params) }
    }

    pub(super) fn new(result: domain::ToolResult, params: Box<RawValue>) -> Self {
        let status = match result.status {
            ToolStatus::Success => SUCCESS,
            ToolStatus::Error => "error",
            ToolStatus::NoData => "no_data",
        };
        Self {
            schema_version: RESULT_SCHEMA,
            status,
            error: result.error,
            return_code: result.return_code,
            data: result.data,
            images: Some(result.images.iter().filter_map(Picture::new).collect::<Vec<_>>())
                .filter(|images| !images.is_empty()),
            url: None,
            invocation: result.invocation,
            params,
            icon_url: None,
            elapsed_seconds: result.elapsed.map(|elapsed| elapsed.as_secs_f64()),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AiMessage {
    pub(crate) content: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) metadata: Metadata,
}

/// What the agent says, not the model.
#[derive(Debug, Serialize)]
pub(crate) struct Notice {
    pub(crate) content: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct TokenCount {
    pub(crate) metadata: Metadata,
}

#[derive(Debug, Serialize)]
pub(crate) struct AiAnswerEnd {
    pub(crate) analysis: String,
    pub(crate) conversation_history: Vec<Outgoing>,
    pub(crate) follow_up_actions: &'static [FollowUp],
    pub(crate) metadata: Metadata,
    /// Runbooks that the question is about, for the older dialect.
    #[serde(skip)]
    pub(crate) runbooks: Vec<String>,
}

/// The stream ends: the client has to act and comes back with the history. Clients look for `content`, others for
/// `analysis`.
#[derive(Debug, Serialize)]
pub(crate) struct ApprovalRequired {
    pub(crate) content: Option<()>,
    pub(crate) analysis: Option<()>,
    pub(crate) conversation_history: Vec<Outgoing>,
    pub(crate) follow_up_actions: &'static [FollowUp],
    pub(crate) requires_approval: bool,
    pub(crate) pending_approvals: Vec<PendingApproval>,
    pub(crate) pending_frontend_tool_calls: Vec<PendingFrontendCall>,
    /// For the answer that is not streamed.
    #[serde(skip)]
    pub(crate) metadata: Metadata,
}

/// A call of a tool that the client runs.
#[derive(Debug, Serialize)]
pub(crate) struct PendingFrontendCall {
    tool_call_id: String,
    tool_name: String,
    arguments: Box<RawValue>,
}

impl From<ToolCall> for PendingFrontendCall {
    fn from(call: ToolCall) -> Self {
        Self {
            tool_call_id: call.id.to_string(),
            arguments: RawValue::from_string(call.arguments).unwrap_or_default(),
            tool_name: call.name,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ErrorEvent {
    pub(crate) description: String,
    pub(crate) error_code: u32,
    pub(crate) msg: String,
    pub(crate) success: bool,
    /// Of an answer that is not streamed.
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// When trying again may help, likewise.
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

/// Something that a client may offer as the next question.
#[derive(Debug, Serialize)]
pub(crate) struct FollowUp {
    id: &'static str,
    action_label: &'static str,
    pre_action_notification_text: &'static str,
    prompt: &'static str,
}

/// Offered after the first answer of a conversation.
pub(super) const FOLLOW_UPS: &[FollowUp] = &[
    FollowUp {
        id: "logs",
        action_label: "Logs",
        pre_action_notification_text: "Looking for the logs that matter…",
        prompt: "Show the log lines that support this answer.",
    },
    FollowUp {
        id: "graphs",
        action_label: "Graphs",
        pre_action_notification_text: "Looking for metrics…",
        prompt: "Show the metrics over time that support this answer.",
    },
    FollowUp {
        id: "articles",
        action_label: "Articles",
        pre_action_notification_text: "Collecting runbooks and links…",
        prompt: "List the runbooks and links that helped, each with one sentence on what it says.",
    },
];

/// Tokens, limits and costs.
#[derive(Debug, Serialize)]
pub(crate) struct Metadata {
    usage: Usage,
    tokens: Tokens,
    max_tokens: u64,
    max_output_tokens: u64,
    costs: Costs,
    /// Results of tools that were cut. Present once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) truncations: Option<Vec<Truncation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// A result of a tool that was cut.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Truncation {
    tool_call_id: String,
    /// Always 0: the beginning was kept.
    start_index: usize,
    /// Characters that were kept.
    end_index: usize,
    tool_name: String,
    original_token_count: u64,
}

impl Truncation {
    /// The cut of a result; `None` if it is whole.
    pub(super) fn of(call: &ToolCall, result: &domain::ToolResult) -> Option<Self> {
        if result.omitted_bytes == 0 {
            return None;
        }
        // Behind the mark is how the model reads on.
        let kept = result.data.rsplit_once(CUT_MARK).map_or(&*result.data, |(kept, _)| kept).trim_end();
        let tokens = u128::from(tokens::of_text(kept));
        // The part that is not here is taken to be as dense as the part that is.
        let bytes = kept.len() as u128 + u128::from(result.omitted_bytes);
        let original = tokens * bytes / kept.len().max(1) as u128;
        Some(Self {
            tool_call_id: call.id.to_string(),
            start_index: 0,
            end_index: kept.chars().count(),
            tool_name: call.name.clone(),
            original_token_count: u64::try_from(original).unwrap_or(u64::MAX),
        })
    }
}

/// Of the last model call.
#[derive(Debug, Serialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
}

/// Of the conversation as it is now.
#[derive(Debug, Serialize)]
struct Tokens {
    total_tokens: u64,
    /// Results of tools.
    tools_tokens: u64,
    system_tokens: u64,
    user_tokens: u64,
    /// Descriptions and schemas of tools.
    tools_to_call_tokens: u64,
    assistant_tokens: u64,
    other_tokens: u64,
}

/// Of the whole run.
#[derive(Debug, Serialize)]
struct Costs {
    total_cost: f64,
    total_tokens: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
    cached_tokens: Option<u64>,
    cache_creation_tokens: Option<u64>,
    reasoning_tokens: u64,
    max_completion_tokens_per_call: u64,
    max_prompt_tokens_per_call: u64,
    num_compactions: u32,
}

/// The model's sizes, which each [`Metadata`] repeats.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) window: u64,
    output: u64,
}

impl From<&RunStarted> for Sizes {
    fn from(started: &RunStarted) -> Self {
        Self { window: started.context_window, output: started.max_output_tokens }
    }
}

impl Metadata {
    /// Tokens of the whole run, prompts and completions.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.costs.prompt_tokens, self.costs.completion_tokens)
    }

    pub(super) fn new(sizes: Sizes, report: &UsageReported) -> Self {
        let UsageReported { usage, totals, context } = *report;
        Self {
            usage: Usage {
                prompt_tokens: usage.prompt,
                completion_tokens: usage.completion,
                total_tokens: usage.prompt.saturating_add(usage.completion),
                cached_tokens: usage.cached,
                cache_creation_tokens: usage.cache_creation,
                reasoning_tokens: usage.reasoning,
            },
            tokens: context.into(),
            max_tokens: sizes.window,
            max_output_tokens: sizes.output,
            costs: totals.into(),
            truncations: None,
            finish_reason: None,
            request_id: None,
        }
    }

    /// What the last event says beside the rest.
    pub(super) fn with_end(self, finish_reason: String, request_id: String) -> Self {
        Self { finish_reason: Some(finish_reason), request_id: Some(request_id), ..self }
    }
}

impl From<ContextSize> for Tokens {
    fn from(size: ContextSize) -> Self {
        Self {
            total_tokens: size.total(),
            tools_tokens: size.tools,
            system_tokens: size.system,
            user_tokens: size.user,
            tools_to_call_tokens: size.tool_schemas,
            assistant_tokens: size.assistant,
            other_tokens: 0,
        }
    }
}

impl From<Totals> for Costs {
    fn from(totals: Totals) -> Self {
        Self {
            total_cost: totals.cost_usd,
            total_tokens: totals.tokens(),
            prompt_tokens: totals.prompt,
            completion_tokens: totals.completion,
            cached_tokens: totals.cached,
            cache_creation_tokens: totals.cache_creation,
            reasoning_tokens: totals.reasoning.unwrap_or(0),
            max_completion_tokens_per_call: totals.max_completion,
            max_prompt_tokens_per_call: totals.max_prompt,
            num_compactions: totals.compactions,
        }
    }
}
