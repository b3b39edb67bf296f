//! One agent of a run, as its events tell.

use std::collections::HashMap;

use domain::{
    AgentId, CallId, Ceiling, CodeOutput, Gate, MessageId, ModelCalled, OutputStream, ToolCall, ToolResult,
    UsageReported,
};

use super::{input, output};
use crate::harness::{
    events::{Event, Of, Progress, Reason, Tokens},
    ids::Seed,
};

#[derive(Debug)]
pub(super) struct Agent {
    seed: Seed,
    id: AgentId,
    of: Of,
    depth: u32,
    max_iterations: u32,
    iterations: u32,
    /// The model call that is not counted yet.
    calling: Option<MessageId>,
    /// Whether the last model call said something.
    spoke: bool,
    totals: Tokens,
    calls: HashMap<CallId, Called>,
    /// Which run of code each call is.
    code: HashMap<CallId, u32>,
    /// Pieces of output so far.
    pieces: u64,
}

/// A call that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) call: ToolCall,
    gate: Gate,
}

fn channel(stream: OutputStream) -> &'static str {
    match stream {
        OutputStream::Stdout => "stdout",
        OutputStream::Stderr => "stderr",
    }
}

impl Agent {
    /// An agent, and the call of another that started it.
    pub(super) fn new(
        seed: Seed,
        id: &AgentId,
        parent: Option<(&Self, &CallId)>,
        max_iterations: u32,
    ) -> Self {
        let of = Of {
            run_id: seed.id(&["run", id.as_str()]),
            agent_id: seed.id(&["agent", id.as_str()]),
            parent_id: parent.map(|(parent, call)| parent.shown_id(call)),
        };
        Self {
            seed,
            id: id.clone(),
            of,
            depth: parent.map_or(0, |(parent, _)| parent.depth.saturating_add(1)),
            max_iterations,
            iterations: 0,
            calling: None,
            spoke: false,
            totals: Tokens::default(),
            calls: HashMap::new(),
            code: HashMap::new(),
            pieces: 0,
        }
    }

    pub(super) fn of(&self) -> Of {
        self.of.clone()
    }

    pub(super) fn start(&self) -> Event {
        let depth = (self.depth > 0).then_some(self.depth);
        Event::HarnessStart { of: self.of(), depth, max_iterations: self.max_iterations }
    }

    pub(super) fn calls_model(&mut self, called: ModelCalled) {
        self.iterations = called.step;
        self.spoke = false;
        self.calling = Some(called.message);
    }

    /// Whom the events of a model call are of.
    fn of_call(&self, message: &MessageId) -> Of {
        Of {
            run_id: self.part("call", message.as_str()),
            agent_id: self.of.agent_id.clone(),
            parent_id: Some(self.of.run_id.clone()),
        }
    }

    fn part(&self, what: &str, id: &str) -> String {
        self.seed.id(&[what, self.id.as_str(), id])
    }

    pub(super) fn text(&mut self, message: &MessageId, content: String) -> Event {
        self.spoke = true;
        Event::Text { of: self.of_call(message), id: self.part("text", message.as_str()), content }
    }

    pub(super) fn reasoning(&self, message: &MessageId, content: String) -> Event {
        Event::Reasoning { of: self.of_call(message), id: self.part("reasoning", message.as_str()), content }
    }

    /// The tokens of a model call; those that are counted again after its tools are known already.
    pub(super) fn counted(&mut self, report: &UsageReported) -> Option<Event> {
        let UsageReported { usage, totals, .. } = *report;
        self.totals = Tokens { input_tokens: totals.prompt, output_tokens: totals.completion };
        let message = self.calling.take()?;
        Some(Event::Usage {
            of: self.of_call(&message),
            tokens: Tokens { input_tokens: usage.prompt, output_tokens: usage.completion },
            cache_read_tokens: usage.cached,
            cache_creation_tokens: usage.cache_creation,
        })
    }

    pub(super) fn call_id(&self, call: &CallId) -> String {
        format!("{}/{call}", self.of.run_id)
    }

    /// The id of a call in the event by which clients know it.
    fn shown_id(&self, call: &CallId) -> String {
        if self.code.contains_key(call) { self.part("code", call.as_str()) } else { self.call_id(call) }
    }

    pub(super) fn call(&self, call: &CallId) -> Option<&Called> {
        self.calls.get(call)
    }

    /// A call that waits or is forbidden is no event of its own. What code runs is told as code prints, and has
    /// events of its own only where it waits.
    pub(super) fn starts(&mut self, call: ToolCall, gate: Gate) -> Option<Event> {
        if let Some(code) = self.code_of(&call.id) {
            let told = format!("{} {}\n", call.name, call.arguments);
            if gate == Gate::Waits {
                self.calls.insert(call.id.clone(), Called { gate, call });
            }
            return Some(self.code_prints(&code, OutputStream::Stderr, told));
        }
        let event = (gate == Gate::Open).then(|| self.tool_call(&call));
        let called = Called { gate, call: call.clone() };
        self.calls.insert(call.id, called);
        event
    }

    /// The code that asks for a command.
    fn code_of(&self, command: &CallId) -> Option<CallId> {
        command.command().map(|(code, _)| code).filter(|code| self.code.contains_key(code))
    }

    pub(super) fn allowed(&mut self, call: &CallId) -> Option<Event> {
        let called = self.calls.get_mut(call)?;
        called.gate = Gate::Open;
        let call = called.call.clone();
        Some(self.tool_call(&call))
    }

    fn tool_call(&self, call: &ToolCall) -> Event {
        let (id, input) = (self.call_id(&call.id), input(call));
        Event::ToolCall { of: self.of(), id, name: call.name.clone(), input }
    }

    pub(super) fn progress(&mut self, id: &CallId, stream: OutputStream, data: String) -> Option<Event> {
        let name = self.calls.get(id)?.call.name.clone();
        let channel = channel(stream);
        self.pieces += 1;
        Some(Event::ToolProgress {
            of: self.of(),
            id: self.part("progress", &self.pieces.to_string()),
            tool_call_id: self.call_id(id),
            name,
            content: Progress { channel, data },
        })
    }

    pub(super) fn finished(&mut self, id: &CallId, result: ToolResult) -> Option<Event> {
        let called = self.calls.remove(id)?;
        let output = match called.gate {
            Gate::Open => output::of(&called.call, result),
            Gate::Waits | Gate::Forbidden => output::denied(result),
        };
        Some(Event::ToolResult { of: self.of(), id: self.call_id(id), name: called.call.name, output })
    }

    pub(super) fn code_starts(&mut self, call: &ToolCall, iteration: u32) -> Event {
        // Clients count from zero.
        let iteration = iteration.saturating_sub(1);
        self.code.insert(call.id.clone(), iteration);
        let code = input(call)["code"].as_str().unwrap_or_default().to_owned();
        Event::ReplInput { of: self.of(), id: self.part("code", call.id.as_str()), code, iteration }
    }

    pub(super) fn code_prints(&mut self, call: &CallId, stream: OutputStream, chunk: String) -> Event {
        self.pieces += 1;
        let id = self.part("printed", &format!("{call} {}", self.pieces));
        Event::ReplProgress { of: self.of(), id, chunk, stream: channel(stream) }
    }

    /// The end of code; the answer that it gave is said by the end of the run.
    pub(super) fn code_ends(&mut self, call: &CallId, output: CodeOutput) -> Event {
        let CodeOutput { stdout, error, answer, truncated, elapsed } = output;
        self.spoke &= answer.is_none();
        Event::ReplOutput {
            of: self.of(),
            id: self.part("code", call.as_str()),
            stdout,
            error,
            done: answer.is_some(),
            iteration: self.code.remove(call),
            duration_ms: elapsed.map(|elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
            truncated,
        }
    }

    /// The end of the run, and before it the answer if no model said it.
    pub(super) fn answered(&self, answer: String, reason: &str) -> (Event, Option<Event>) {
        let reason = if Ceiling::named(reason).is_some() { Reason::MaxIterations } else { Reason::Final };
        let end = self.end(Some(reason));
        if self.spoke || answer.is_empty() {
            return (end, None);
        }
        (Event::Text { of: self.of(), id: self.part("answer", ""), content: answer }, Some(end))
    }

    pub(super) fn end(&self, reason: Option<Reason>) -> Event {
        Event::HarnessEnd { of: self.of(), reason, iterations: self.iterations, total_usage: self.totals }
    }
}
