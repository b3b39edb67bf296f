//! Domain events in, events of the dialect out, without any I/O.

mod agent;
mod output;

use std::collections::{BTreeMap, HashMap};

use domain::{AgentId, Approval, EventKind, Gate, Rule, RunId, RunStarted, Timestamp, ToolCall};
use serde_json::Value;

use crate::{
    answer::{Interruption, Projection},
    approvals::{Approvals, PendingCall},
    sse::Frame,
};

use super::{
    events::{Event, Of, RelayKind},
    ids::{self, Seed},
};
use agent::{Agent, Called};

/// Bytes of patterns that the id of a relay may hold.
const LONGEST_PATTERNS: usize = 1024;

/// What later events need to know of earlier ones.
#[derive(Debug)]
pub(super) struct Encoder {
    /// Signs calls that wait for a person.
    approvals: Option<Approvals>,
    seed: Option<Seed>,
    account: String,
    session: String,
    agents: HashMap<AgentId, Agent>,
    /// Comes right after the event that was made last.
    next: Option<Event>,
}

impl Encoder {
    pub(super) fn new(approvals: Option<Approvals>) -> Self {
        let (account, session) = (String::new(), String::new());
        Self { approvals, seed: None, account, session, agents: HashMap::new(), next: None }
    }

    /// The event of the dialect that a domain event becomes.
    pub(super) fn encode(&mut self, event: domain::Event) -> Option<Event> {
        let domain::Event { run, time, agent: id, parent, kind, .. } = event;
        if let EventKind::RunStarted(started) = &kind {
            return Some(self.started(&run, time, id, parent.as_ref(), started));
        }
        let agent = self.agents.get_mut(&id)?;
        match kind {
            EventKind::ModelCalled(called) => {
                agent.calls_model(called);
                None
            }
            EventKind::TextDelta { message, text } => Some(agent.text(&message, text)),
            EventKind::ThinkingDelta { message, text } => Some(agent.reasoning(&message, text)),
            EventKind::UsageReported(report) => agent.counted(&report),
            EventKind::ToolStarted { call, gate, .. } => agent.starts(call, gate),
            EventKind::CallApproved { call, .. } => agent.starts(call, Gate::Open),
            EventKind::CallAllowed { call, .. } => agent.allowed(&call),
            EventKind::ToolOutput { call, stream, text } => agent.progress(&call, stream, text),
            EventKind::ToolFinished { call, result } => agent.finished(&call, result),
            EventKind::ApprovalRequested { call, approval } => {
                let called = agent.call(&call)?.clone();
                let (of, tool_call_id) = (agent.of(), agent.call_id(&call));
                self.relay(&run, time, of, tool_call_id, called, &approval)
            }
            EventKind::ReplInput { call, iteration } => Some(agent.code_starts(&call, iteration)),
            EventKind::ReplProgress { call, stream, text } => Some(agent.code_prints(&call, stream, text)),
            EventKind::ReplOutput { call, output } => Some(agent.code_ends(&call, output)),
            EventKind::RunFinished { answer, reason } => {
                let (first, next) = agent.answered(answer, &reason);
                self.next = next;
                Some(first)
            }
            EventKind::RunFailed { message, .. } => Some(self.failed(&id, message)),
            EventKind::RunCancelled { reason } => {
                Some(self.failed(&id, format!("The run was cancelled: {reason}")))
            }
            EventKind::RunSuspended => {
                Some(self.failed(&id, "The run waits for a client that cannot be asked here".to_owned()))
            }
            EventKind::RunStarted(_)
            | EventKind::RunRecovered
            | EventKind::RunHandedOver
            | EventKind::CallPlaced { .. }
            | EventKind::SessionRecord(_)
            | EventKind::AttemptAbandoned { .. }
            | EventKind::AssistantMessage(_)
            | EventKind::QuestionAnswered(_)
            | EventKind::ClientToolRequested { .. }
            | EventKind::CallResolved { .. }
            | EventKind::CompactionStarted(_)
            | EventKind::CompactionDone(_)
            | EventKind::Steered(_)
            | EventKind::CompactionFailed { .. }
            | EventKind::Notice { .. } => None,
        }
    }

    fn started(
        &mut self,
        run: &RunId,
        time: Timestamp,
        id: AgentId,
        parent: Option<&AgentId>,
        started: &RunStarted,
    ) -> Event {
        if id == AgentId::main() {
            self.account.clone_from(&started.account);
            self.session.clone_from(&started.setup.session);
        }
        let seed = self.seed.get_or_insert_with(|| Seed::new(run.as_str(), time)).clone();
        let parent = parent.and_then(|parent| self.agents.get(parent)).zip(started.call.as_ref());
        // Of the steps of code, the last one is for an answer.
        let iterations = started.rlm.map_or(u32::MAX, |rlm| rlm.iterations).min(started.setup.limits.steps);
        let agent = Agent::new(seed, &id, parent, iterations);
        let event = agent.start();
        self.agents.insert(id, agent);
        event
    }

    /// Asks for a decision. Whoever may give it is whoever holds the id.
    fn relay(
        &self,
        run: &RunId,
        time: Timestamp,
        of: Of,
        tool_call_id: String,
        called: Called,
        approval: &Approval,
    ) -> Option<Event> {
        let call = called.call;
        let asked_at = time.0.div_euclid(1_000_000_000);
        let waiting = PendingCall {
            session: self.session.clone(),
            patterns: if approval.prefixes.is_empty() { patterns(&call) } else { BTreeMap::new() },
            ..PendingCall::new(&self.account, run.as_str(), &call, approval, asked_at)
        };
        let id = self.approvals.as_ref()?.token(&waiting);
        let (kind, params) = (RelayKind::Permission, input(&call));
        Some(Event::Relay { of, id, kind, tool_call_id, tool: call.name, params })
    }

    fn failed(&mut self, id: &AgentId, message: String) -> Event {
        let agent = self.agents.get(id);
        self.next = agent.map(|agent| agent.end(None));
        Event::Error { of: agent.map(Agent::of), message }
    }
}

/// Patterns for the parameters of calls like this one; none if they are too long for an id.
fn patterns(call: &ToolCall) -> BTreeMap<String, String> {
    let parameters = wire::parameters(&call.arguments).unwrap_or_default();
    let patterns = Rule::like(&call.name, &parameters).parameters;
    let size: usize = patterns.iter().map(|(name, pattern)| name.len() + pattern.len()).sum();
    if size <= LONGEST_PATTERNS { patterns } else { BTreeMap::new() }
}

/// The arguments of a call; as text if they are no JSON.
fn input(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()))
}

impl Projection for Encoder {
    fn opening(&self, run: &str) -> Option<Frame> {
        Some(Event::Connected { session_id: ids::session(run) }.frame())
    }

    fn frame(&mut self, event: domain::Event) -> Option<Frame> {
        self.encode(event).map(|event| event.frame())
    }

    fn following(&mut self) -> Option<Frame> {
        self.next.take().map(|event| event.frame())
    }

    fn broken(&self, why: &Interruption) -> Frame {
        Event::Error { of: None, message: why.to_string() }.frame()
    }
}
