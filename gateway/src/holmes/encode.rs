//! Domain events in, events of the dialect out: at most one for each, and without any I/O.

use std::{collections::HashMap, time::Duration};

use domain::{
    AgentId, Approval, AssistantMessage, CallId, CompactionDone, CompactionStarted, ContextSize, EventKind,
    FailureCode, Limits, Role, Run, RunId, RunStarted, Timestamp, ToolCall, Totals, Usage, UsageReported,
};
use http::StatusCode;
use serde_json::value::RawValue;

use crate::{
    answer::{Interruption, Projection},
    approvals::{Approvals, PendingCall},
    sse::Frame,
};

use super::{
    approval::{self, PendingApproval},
    compaction::{Compacted, CompactionStart},
    events::{
        AiAnswerEnd, AiMessage, ApprovalRequired, ErrorEvent, Event, FOLLOW_UPS, FollowUp, Metadata, Notice,
        PendingFrontendCall, Sizes, StartToolCalling, TokenCount, ToolCallingResult, ToolResult, Truncation,
    },
    history, marks,
};

const RATE_LIMITED: u32 = 5204;
const ANY_OTHER_ERROR: u32 = 1;

/// What later events need to know of earlier ones.
#[derive(Debug)]
pub(crate) struct Encoder {
    request_id: String,
    sizes: Sizes,
    report: UsageReported,
    /// The conversation so far.
    run: Run,
    follow_ups: &'static [FollowUp],
    /// Runbooks that the question is about.
    runbooks: Vec<String>,
    running: HashMap<CallId, Running>,
    /// Signs calls that wait for a person.
    approvals: Option<Approvals>,
    account: String,
    /// The cluster that the run looks at, if it is one.
    cluster: String,
    pending_approvals: Vec<PendingApproval>,
    marks: marks::Outgoing,
    truncations: Vec<Truncation>,
    /// The compaction in progress, as it was announced.
    compacting: Option<CompactionStart>,
}

/// A tool call that has started.
#[derive(Debug)]
struct Running {
    call: ToolCall,
    description: String,
    toolset: Option<String>,
}

impl Encoder {
    pub(crate) fn new(request_id: String, approvals: Option<Approvals>) -> Self {
        let nothing = UsageReported {
            usage: Usage::default(),
            totals: Totals::default(),
            context: ContextSize::default(),
        };
        Self {
            request_id,
            sizes: Sizes::default(),
            report: nothing,
            run: Run::new(Limits::default()),
            follow_ups: &[],
            runbooks: Vec::new(),
            running: HashMap::new(),
            approvals,
            account: String::new(),
            cluster: String::new(),
            pending_approvals: Vec::new(),
            marks: marks::Outgoing::default(),
            truncations: Vec::new(),
            compacting: None,
        }
    }

    /// The cluster that the run looks at, as far as it has been told; empty if there is a choice.
    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The event of the dialect that a domain event becomes.
    pub(crate) fn encode(&mut self, event: domain::Event) -> Option<Event> {
        self.run.see(&event.agent, &event.kind);
        if event.agent != AgentId::main() {
            return None;
        }
        match event.kind {
            EventKind::RunStarted(started) => {
                self.started(&started);
                None
            }
            EventKind::UsageReported(report) => {
                self.report = report;
                Some(Event::TokenCount(TokenCount { metadata: self.metadata() }))
            }
            EventKind::AssistantMessage(said) => self.said(&said),
            EventKind::ToolStarted { call, description, toolset, .. } => {
                Some(self.tool_started(Running { call, description, toolset }))
            }
            EventKind::ToolFinished { call, result } => self.tool_finished(&call, result),
            EventKind::ClientToolRequested { call } => {
                self.marks.with_client.extend(self.running.remove(&call).map(|running| running.call));
                None
            }
            EventKind::ApprovalRequested { call, approval } => {
                self.approval_requested(&event.run, &call, approval, event.time)
            }
            EventKind::CallApproved { call, description, toolset, permission, cluster: _ } => {
                if !permission.standing.is_empty() {
                    self.marks.standing.insert(call.id.clone(), permission.standing);
                }
                self.running.insert(call.id.clone(), Running { call, description, toolset });
                None
            }
            EventKind::CallResolved { call, result, by_client } => {
                Some(self.resolved(call, result, by_client))
            }
            EventKind::CompactionStarted(started) => Some(self.compaction_started(&started)),
            EventKind::CompactionDone(done) => self.compacted(done),
            EventKind::CompactionFailed { reason, .. } => {
                let content = format!("The conversation history could not be compacted: {reason}");
                Some(Event::Notice(Notice { content }))
            }
            EventKind::Notice { text } => Some(Event::Notice(Notice { content: text })),
            EventKind::RunSuspended => Some(self.suspended()),
            EventKind::RunFinished { answer, reason } => Some(self.finished(answer, reason)),
            EventKind::RunFailed { code, message } => Some(failed(code, message)),
            EventKind::RunCancelled { reason } => {
                Some(error(StatusCode::INTERNAL_SERVER_ERROR, format!("The run was cancelled: {reason}")))
            }
            EventKind::RunRecovered
            | EventKind::RunHandedOver
            | EventKind::CallPlaced { .. }
            | EventKind::CallAllowed { .. }
            | EventKind::SessionRecord(_)
            | EventKind::Steered(_)
            | EventKind::ModelCalled(_)
            | EventKind::AttemptAbandoned { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolOutput { .. }
            | EventKind::ReplInput { .. }
            | EventKind::ReplProgress { .. }
            | EventKind::QuestionAnswered(_)
            | EventKind::ReplOutput { .. } => None,
        }
    }

    fn metadata(&self) -> Metadata {
        let report = UsageReported { totals: self.run.totals_of_all(), ..self.report };
        let mut metadata = Metadata::new(self.sizes, &report);
        metadata.truncations = Some(self.truncations.clone()).filter(|truncations| !truncations.is_empty());
        metadata
    }

    fn started(&mut self, started: &RunStarted) {
        self.sizes = Sizes::from(started);
        self.runbooks.clone_from(&started.runbooks);
        self.account.clone_from(&started.account);
        self.cluster.clone_from(&started.setup.cluster);
        let first_turn = started.messages.iter().all(|message| message.role != Role::Assistant);
        self.follow_ups = if first_turn { FOLLOW_UPS } else { &[] };
    }

    /// Only what is said beside tool calls is an event of its own: the last word comes with the end.
    fn said(&self, said: &AssistantMessage) -> Option<Event> {
        let content = Some(said.message.joined_text()).filter(|text| !text.is_empty());
        let reasoning = said.message.joined_thinking();
        let goes_on = !said.message.tool_calls.is_empty();
        let shown = goes_on && (content.is_some() || reasoning.is_some());
        shown.then(|| Event::AiMessage(AiMessage { content, reasoning, metadata: self.metadata() }))
    }

    fn tool_started(&mut self, running: Running) -> Event {
        let event = StartToolCalling {
            tool_name: running.call.name.clone(),
            id: running.call.id.to_string(),
            description: running.description.clone(),
            params: params(&running.call),
        };
        self.running.insert(running.call.id.clone(), running);
        Event::StartToolCalling(event)
    }

    fn tool_finished(&mut self, id: &CallId, result: domain::ToolResult) -> Option<Event> {
        let Running { call, description, toolset } = self.running.remove(id)?;
        self.truncations.extend(Truncation::of(&call, &result));
        let result = ToolResult::new(result, params(&call));
        Some(tool_calling_result(call, description, toolset, result))
    }

    /// The person sees what waits, and the client holds it until it is decided.
    fn approval_requested(
        &mut self,
        run: &RunId,
        id: &CallId,
        approval: Approval,
        at: Timestamp,
    ) -> Option<Event> {
        let Running { call, description, toolset } = self.running.remove(id)?;
        if let Some(approvals) = &self.approvals {
            let asked_at = at.0.div_euclid(1_000_000_000);
            let waiting = PendingCall::new(&self.account, run.as_str(), &call, &approval, asked_at);
            self.marks.tokens.insert(id.clone(), approvals.token(&waiting));
        }
        let result = ToolResult::waiting(&approval, approval::params(&call, &approval.prefixes));
        self.pending_approvals.push(PendingApproval::new(&call, description.clone(), approval));
        Some(tool_calling_result(call, description, toolset, result))
    }

    fn resolved(&self, call: ToolCall, result: domain::ToolResult, by_client: bool) -> Event {
        let description = if by_client { format!("Frontend tool: {}", call.name) } else { call.name.clone() };
        let result = ToolResult::new(result, params(&call));
        tool_calling_result(call, description, None, result)
    }

    fn compaction_started(&mut self, started: &CompactionStarted) -> Event {
        let start = CompactionStart::new(started, history::count(self.run.messages()), self.sizes);
        self.compacting = Some(start.clone());
        Event::CompactionStart(start)
    }

    fn compacted(&mut self, done: CompactionDone) -> Option<Event> {
        let start = self.compacting.take()?;
        let messages = history::write(self.run.messages(), &self.marks);
        Some(Event::Compacted(Box::new(Compacted::new(&start, done, messages))))
    }

    fn suspended(&mut self) -> Event {
        Event::ApprovalRequired(Box::new(ApprovalRequired {
            content: None,
            analysis: None,
            conversation_history: history::write(self.run.messages(), &self.marks),
            follow_up_actions: self.follow_ups,
            requires_approval: true,
            pending_approvals: std::mem::take(&mut self.pending_approvals),
            pending_frontend_tool_calls: self
                .marks
                .with_client
                .iter()
                .cloned()
                .map(PendingFrontendCall::from)
                .collect(),
            metadata: self.metadata(),
        }))
    }

    fn finished(&mut self, analysis: String, reason: String) -> Event {
        Event::AiAnswerEnd(Box::new(AiAnswerEnd {
            analysis,
            conversation_history: history::write(self.run.messages(), &self.marks),
            follow_up_actions: self.follow_ups,
            metadata: self.metadata().with_end(reason, self.request_id.clone()),
            runbooks: std::mem::take(&mut self.runbooks),
        }))
    }
}

impl Projection for Encoder {
    fn frame(&mut self, event: domain::Event) -> Option<Frame> {
        self.encode(event).map(|event| event.frame())
    }

    fn broken(&self, why: &Interruption) -> Frame {
        error(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()).frame()
    }
}

fn tool_calling_result(
    call: ToolCall,
    description: String,
    toolset_name: Option<String>,
    result: ToolResult,
) -> Event {
    Event::ToolCallingResult(Box::new(ToolCallingResult {
        tool_call_id: call.id.to_string(),
        tool_name: call.name.clone(),
        description,
        role: "tool",
        result: Some(result),
        toolset_name,
        name: call.name,
    }))
}

fn params(call: &ToolCall) -> Box<RawValue> {
    RawValue::from_string(call.arguments.clone()).unwrap_or_default()
}

fn failed(code: FailureCode, message: String) -> Event {
    match code {
        FailureCode::RateLimited { retry_after } => rate_limited(message, retry_after),
        FailureCode::QuotaExhausted => rate_limited(message, None),
        FailureCode::Unauthenticated => error(StatusCode::UNAUTHORIZED, message),
        FailureCode::ContextTooLong => error(StatusCode::PAYLOAD_TOO_LARGE, message),
        FailureCode::Rejected
        | FailureCode::ModelUnavailable
        | FailureCode::MalformedReply
        | FailureCode::Deadline
        | FailureCode::Internal => error(StatusCode::INTERNAL_SERVER_ERROR, message),
    }
}

fn rate_limited(description: String, retry_after: Option<Duration>) -> Event {
    Event::Error(ErrorEvent {
        description,
        error_code: RATE_LIMITED,
        msg: "Rate limit exceeded".to_owned(),
        success: false,
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after,
    })
}

pub(super) fn error(status: StatusCode, text: String) -> Event {
    Event::Error(ErrorEvent {
        description: text.clone(),
        error_code: ANY_OTHER_ERROR,
        msg: text,
        success: false,
        status,
        retry_after: None,
    })
}
