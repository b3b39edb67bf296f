//! Domain events in, events of the dialect out: at most one for each, and without any I/O.

use std::collections::HashMap;

use domain::{
    AgentId, AssistantMessage, CallId, CompactionDone, CompactionStarted, ContextSize, EventKind,
    FailureCode, Limits, Role, Run, RunStarted, ToolCall, Totals, Usage, UsageReported,
};
use http::StatusCode;
use serde_json::value::RawValue;

use crate::{
    answer::{Interruption, Projection},
    sse::Frame,
};

use super::{
    compaction::{Compacted, CompactionStart},
    events::{
        AiAnswerEnd, AiMessage, ApprovalRequired, ErrorEvent, Event, FOLLOW_UPS, FollowUp, Metadata, Notice,
        PendingFrontendCall, Sizes, StartToolCalling, TokenCount, ToolCallingResult, ToolResult, Truncation,
    },
    history,
};

const RATE_LIMITED: u32 = 5204;
const ANY_OTHER_ERROR: u32 = 1;

/// What later events need to know of earlier ones.
#[derive(Debug)]
pub(super) struct Encoder {
    request_id: String,
    sizes: Sizes,
    report: UsageReported,
    /// The conversation so far.
    run: Run,
    follow_ups: &'static [FollowUp],
    /// Runbooks that the question is about.
    runbooks: Vec<String>,
    running: HashMap<CallId, Running>,
    /// Calls that the client must run.
    waiting: Vec<ToolCall>,
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
    pub(super) fn new(request_id: String) -> Self {
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
            waiting: Vec::new(),
            truncations: Vec::new(),
            compacting: None,
        }
    }

    /// The event of the dialect that a domain event becomes.
    pub(super) fn encode(&mut self, event: domain::Event) -> Option<Event> {
        if event.agent != AgentId::main() {
            return None;
        }
        self.run.apply(&event.kind);
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
            EventKind::ToolStarted { call, description, toolset } => {
                Some(self.tool_started(Running { call, description, toolset }))
            }
            EventKind::ToolFinished { call, result } => self.tool_finished(&call, result),
            EventKind::ClientToolRequested { call } => {
                self.waiting.extend(self.running.remove(&call).map(|running| running.call));
                None
            }
            EventKind::CallResolved { call, result, .. } => Some(self.resolved(call, result)),
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
            EventKind::ModelCalled(_)
            | EventKind::AttemptAbandoned { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolOutput { .. } => None,
        }
    }

    fn metadata(&self) -> Metadata {
        let mut metadata = Metadata::new(self.sizes, &self.report);
        metadata.truncations = Some(self.truncations.clone()).filter(|truncations| !truncations.is_empty());
        metadata
    }

    fn started(&mut self, started: &RunStarted) {
        self.sizes = Sizes::from(started);
        self.runbooks.clone_from(&started.runbooks);
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
        Some(Event::ToolCallingResult(Box::new(ToolCallingResult {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.clone(),
            description,
            role: "tool",
            result: Some(ToolResult::new(result, params(&call))),
            toolset_name: toolset,
            name: call.name,
        })))
    }

    fn resolved(&mut self, call: ToolCall, result: domain::ToolResult) -> Event {
        Event::ToolCallingResult(Box::new(ToolCallingResult {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.clone(),
            description: format!("Frontend tool: {}", call.name),
            role: "tool",
            result: Some(ToolResult::new(result, params(&call))),
            toolset_name: None,
            name: call.name,
        }))
    }

    fn compaction_started(&mut self, started: &CompactionStarted) -> Event {
        let start = CompactionStart::new(started, history::count(self.run.messages()), self.sizes);
        self.compacting = Some(start.clone());
        Event::CompactionStart(start)
    }

    fn compacted(&mut self, done: CompactionDone) -> Option<Event> {
        let start = self.compacting.take()?;
        let messages = history::write(self.run.messages(), &[]);
        Some(Event::Compacted(Box::new(Compacted::new(&start, done, messages))))
    }

    fn suspended(&mut self) -> Event {
        let waiting = std::mem::take(&mut self.waiting);
        Event::ApprovalRequired(Box::new(ApprovalRequired {
            content: None,
            analysis: None,
            conversation_history: history::write(self.run.messages(), &waiting),
            follow_up_actions: self.follow_ups,
            requires_approval: true,
            pending_approvals: [],
            pending_frontend_tool_calls: waiting.into_iter().map(PendingFrontendCall::from).collect(),
        }))
    }

    fn finished(&mut self, analysis: String, reason: String) -> Event {
        Event::AiAnswerEnd(Box::new(AiAnswerEnd {
            analysis,
            conversation_history: history::write(self.run.messages(), &[]),
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

fn params(call: &ToolCall) -> Box<RawValue> {
    RawValue::from_string(call.arguments.clone()).unwrap_or_default()
}

fn failed(code: FailureCode, message: String) -> Event {
    match code {
        FailureCode::RateLimited => Event::Error(ErrorEvent {
            description: message,
            error_code: RATE_LIMITED,
            msg: "Rate limit exceeded".to_owned(),
            success: false,
            status: StatusCode::TOO_MANY_REQUESTS,
        }),
        FailureCode::Unauthenticated => error(StatusCode::UNAUTHORIZED, message),
        FailureCode::Rejected
        | FailureCode::ModelUnavailable
        | FailureCode::MalformedReply
        | FailureCode::Deadline
        | FailureCode::ContextTooLong
        | FailureCode::Internal => error(StatusCode::INTERNAL_SERVER_ERROR, message),
    }
}

fn error(status: StatusCode, text: String) -> Event {
    Event::Error(ErrorEvent {
        description: text.clone(),
        error_code: ANY_OTHER_ERROR,
        msg: text,
        success: false,
        status,
    })
}
