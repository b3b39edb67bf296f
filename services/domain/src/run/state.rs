//! What is known of a run, and how each event changes it.

use std::collections::{BTreeMap, HashSet};

use crate::{
    AgentId, Before, CallId, Ceiling, Closing, CompactionStarted, ContextSize, Effect, EventKind, Limits,
    Message, MessageId, ModelCalled, Outcome, Part, Permission, Rlm, Role, RunStarted, ToolCall, ToolProfile,
    ToolResult, Totals, Usage, UsageReported,
};

use super::text;

/// A run, or one agent of it: everything that its log says.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub(super) agent: AgentId,
    /// What the other agents of the run have used.
    pub(super) others: BTreeMap<AgentId, Used>,
    pub(super) limits: Limits,
    pub(super) phase: Phase,
    pub(super) messages: Vec<Message>,
    /// What was said since the model was asked last.
    pub(super) unheard: Vec<Message>,
    /// The model's context window, in tokens; zero if it is not known.
    pub(super) window: u64,
    /// Tokens of it that one reply may take.
    pub(super) reserve: u64,
    /// Size of what the model sees beside the conversation.
    pub(super) overhead: ContextSize,
    pub(super) context: ContextSize,
    pub(super) usage: Usage,
    pub(super) totals: Totals,
    /// Whether the client can put a call to a person.
    pub(super) approvals: bool,
    /// Whether calls wait for the client in this run, instead of suspending it.
    pub(super) waits: bool,
    /// Whether only the agent that answers can put a call to a person, by suspending the run.
    pub(super) main_asks: bool,
    /// Whether the answer must have a form.
    pub(super) structured: bool,
    /// Whether its tools work on files of its own: then the same call may tell something new.
    pub(super) keeps_files: bool,
    /// How it works, if it does so by code.
    pub(super) rlm: Option<Rlm>,
    /// Calls that were made for the sake of the form.
    pub(super) form_calls: u32,
    /// The text of the last attempt that was abandoned.
    pub(super) draft: String,
    /// How often it was lost and taken over since it last came further.
    pub(super) recoveries: u32,
    /// Whether it was left to whoever takes it over next.
    handed_over: bool,
    pub(super) steps: u32,
    pub(super) tool_calls: u32,
    /// Commands of its code.
    pub(super) commands: u32,
    /// Calls that ran and whose results the model has: the same call again would tell it nothing new.
    pub(super) made: HashSet<(String, String)>,
    /// Ids of all calls of the conversation, the compacted part included.
    pub(super) call_ids: HashSet<CallId>,
}

/// What an agent has used of the run's ceilings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Used {
    totals: Totals,
    tool_calls: u32,
}

/// Where the run stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phase {
    /// Nothing happened yet.
    Fresh,
    /// The model is asked.
    Calling { called: ModelCalled, partial: String },
    /// It is asked for a summary.
    Compacting(CompactionStarted),
    /// Its calls are judged.
    Planning { calls: Vec<ToolCall> },
    /// Its calls run.
    Acting { calls: Vec<Open> },
    /// Over.
    Ended(Outcome),
}

/// A started tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Open {
    pub(super) call: ToolCall,
    pub(super) permission: Option<Permission>,
    /// Where it is, and what it printed.
    pub(super) before: Before,
    pub(super) standing: Standing,
    /// Whether code asked for it, and not the model.
    pub(super) is_command: bool,
}

/// How a started tool call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It runs, or waits for room.
    Open,
    /// It waits for the client: for its result, or for a person's decision.
    WithClient,
    /// It has its result.
    Ended,
}

impl Run {
    /// A run of which nothing is known yet but its ceilings.
    pub fn new(limits: Limits) -> Self {
        Self {
            agent: AgentId::main(),
            others: BTreeMap::new(),
            limits,
            phase: Phase::Fresh,
            messages: Vec::new(),
            unheard: Vec::new(),
            window: 0,
            reserve: 0,
            overhead: ContextSize::default(),
            context: ContextSize::default(),
            usage: Usage::default(),
            totals: Totals::default(),
            approvals: false,
            waits: false,
            main_asks: false,
            structured: false,
            keeps_files: false,
            rlm: None,
            form_calls: 0,
            draft: String::new(),
            recoveries: 0,
            handed_over: false,
            steps: 0,
            tool_calls: 0,
            commands: 0,
            made: HashSet::new(),
            call_ids: HashSet::new(),
        }
    }

    /// The run that a log tells of.
    pub fn fold<'a>(limits: Limits, events: impl IntoIterator<Item = &'a EventKind>) -> Self {
        let mut run = Self::new(limits);
        for event in events {
            run.apply(event);
        }
        run
    }

    /// A subagent that is to start in the run that this one belongs to.
    #[must_use]
    pub fn subagent(&self, agent: AgentId, limits: Limits) -> Self {
        let mut others = self.others.clone();
        others.insert(self.agent.clone(), Used { totals: self.totals, tool_calls: self.calls() });
        others.remove(&agent);
        let main_asks = self.approvals && !self.waits;
        Self { agent, others, main_asks, keeps_files: self.keeps_files, ..Self::new(limits) }
    }

    /// The agent.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Takes an event of the log into account, whichever agent it is about.
    pub fn see(&mut self, agent: &AgentId, event: &EventKind) {
        if *agent == self.agent {
            return self.apply(event);
        }
        let used = self.others.entry(agent.clone()).or_default();
        match event {
            EventKind::UsageReported(report) => used.totals = report.totals,
            EventKind::ToolStarted { .. } | EventKind::ReplInput { .. } => {
                used.tool_calls = used.tool_calls.saturating_add(1);
            }
            // While another agent comes further, the run does.
            EventKind::AssistantMessage(_)
            | EventKind::ToolFinished { .. }
            | EventKind::ReplOutput { .. } => self.recoveries = 0,
            _ => {}
        }
    }

    /// The conversation so far: the one that came with the question, and what was said since.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Tokens and cost of this agent so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Tokens and cost of all agents so far.
    pub fn totals_of_all(&self) -> Totals {
        self.others.values().fold(self.totals, |totals, used| totals.and(used.totals))
    }

    /// What all agents of the run have used, this one included.
    fn used(&self) -> (u64, f64, u32) {
        let own = (self.totals.tokens(), self.totals.cost_usd, self.calls());
        self.others.values().fold(own, |(tokens, cost, calls), used| {
            let tokens = tokens.saturating_add(used.totals.tokens());
            (tokens, cost + used.totals.cost_usd, calls.saturating_add(used.tool_calls))
        })
    }

    /// Model calls so far, the one in progress included.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Tool calls and commands of code.
    fn calls(&self) -> u32 {
        self.tool_calls.saturating_add(self.commands)
    }

    /// Tool calls so far.
    pub fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// How the run ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Ended(outcome) => Some(outcome),
            Phase::Fresh
            | Phase::Calling { .. }
            | Phase::Compacting(_)
            | Phase::Planning { .. }
            | Phase::Acting { .. } => None,
        }
    }

    /// What a driver that takes over must do: the effects that the log shows as begun and not ended.
    pub fn in_flight(&self) -> Vec<Effect> {
        match &self.phase {
            Phase::Fresh => Vec::new(),
            Phase::Calling { called, .. } => vec![self.call_model(called)],
            Phase::Compacting(started) => vec![Effect::Summarize { message: started.message.clone() }],
            Phase::Planning { calls } => vec![Effect::Plan(calls.clone())],
            Phase::Acting { calls } => {
                let waits = |open: &&Open| self.waits && open.standing == Standing::WithClient;
                let waiting = calls.iter().filter(waits);
                let waiting = waiting.map(|open| self.await_client(&open.call.id));
                waiting.chain(self.running(calls).map(Open::run)).collect()
            }
            Phase::Ended(_) => vec![Effect::Finish],
        }
    }

    pub(super) fn await_client(&self, call: &CallId) -> Effect {
        Effect::AwaitClient { call: call.clone(), time: self.limits.decision_time }
    }

    pub(super) fn call_model(&self, called: &ModelCalled) -> Effect {
        let note = called.closing.map(|closing| match closing {
            Closing::Ceiling(ceiling) => text::answer_now(ceiling),
            Closing::Form => text::answer_in_form(&self.draft),
        });
        Effect::CallModel { message: called.message.clone(), offer_tools: called.closing.is_none(), note }
    }

    /// Calls that may run now: calls start in the model's order, and each end makes room for one. Commands need none.
    pub(super) fn running<'a>(&self, calls: &'a [Open]) -> impl Iterator<Item = &'a Open> + use<'a> {
        let room = self.limits.parallel_tools.max(1) as usize;
        let open = || calls.iter().filter(|open| open.standing == Standing::Open);
        open().filter(|open| !open.is_command).take(room).chain(open().filter(|open| open.is_command))
    }

    /// The ceiling that forbids another round of tools, if one does.
    pub(super) fn ceiling(&self) -> Option<Ceiling> {
        if let Some(spent) = self.spent() {
            Some(spent)
        } else if self.calls_are_made() {
            Some(Ceiling::ToolCalls)
        } else if self.steps >= self.limits.steps {
            Some(Ceiling::Steps)
        } else {
            None
        }
    }

    /// Whether the agents have made all calls that the run may make.
    pub(super) fn calls_are_made(&self) -> bool {
        self.used().2 >= self.limits.tool_calls
    }

    /// The ceiling that forbids another question to a model, whoever asks, if one does.
    pub fn spent(&self) -> Option<Ceiling> {
        let (tokens, cost, _) = self.used();
        if self.limits.tokens.is_some_and(|most| tokens >= most) {
            Some(Ceiling::Tokens)
        } else if self.limits.cost_usd.is_some_and(|most| cost >= most) {
            Some(Ceiling::Cost)
        } else {
            None
        }
    }

    pub(super) fn report(&self) -> EventKind {
        EventKind::UsageReported(UsageReported {
            usage: self.usage,
            totals: self.totals,
            context: self.context,
        })
    }

    /// Takes an event of the log into account.
    pub fn apply(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted(started) => self.start(started),
            EventKind::ModelCalled(called) => {
                self.steps = called.step;
                self.form_calls += u32::from(called.closing == Some(Closing::Form));
                self.hear();
                self.phase = Phase::Calling { called: called.clone(), partial: String::new() };
            }
            EventKind::TextDelta { message, text } => self.append(message, text),
            EventKind::UsageReported(report) => {
                self.usage = report.usage;
                self.totals = report.totals;
                self.context = report.context;
            }
            EventKind::AssistantMessage(assistant) => {
                let calls = assistant.message.tool_calls.clone();
                self.remember_ids(&assistant.message);
                self.messages.push(assistant.message.clone());
                self.recoveries = 0;
                self.phase = Phase::Planning { calls };
            }
            EventKind::ToolStarted { call, .. } if self.rlm.is_some() => {
                self.commands = self.commands.saturating_add(1);
                self.push(call, None, true);
            }
            EventKind::ToolStarted { call, .. } | EventKind::ReplInput { call, .. } => self.open(call, None),
            EventKind::ReplOutput { call, output } => self.close_code(call, output),
            EventKind::CallApproved { call, permission, .. } => self.open(call, Some(permission.clone())),
            EventKind::ToolFinished { call, result } => self.close(call, result),
            EventKind::ClientToolRequested { call } | EventKind::ApprovalRequested { call, .. } => {
                if let Some(open) = self.open_call(call) {
                    open.standing = Standing::WithClient;
                }
            }
            EventKind::CallAllowed { call, permission } => self.allow(call, permission),
            EventKind::CallResolved { call, result, by_client } => {
                if let Some(open) = self.open_call(&call.id) {
                    open.standing = Standing::Ended;
                }
                self.resolve(call, result, *by_client);
            }
            EventKind::Steered(steered) => self.queue(&steered.message),
            EventKind::CompactionStarted(started) => self.phase = Phase::Compacting(started.clone()),
            EventKind::CompactionDone(done) => {
                self.messages.clone_from(&done.messages);
                self.context = self.size_of(&done.messages);
            }
            EventKind::RunSuspended => self.phase = Phase::Ended(Outcome::Suspended),
            EventKind::RunFinished { .. } => self.phase = Phase::Ended(Outcome::Finished),
            EventKind::RunFailed { .. } => self.phase = Phase::Ended(Outcome::Failed),
            EventKind::RunCancelled { .. } => self.phase = Phase::Ended(Outcome::Cancelled),
            EventKind::AttemptAbandoned { .. } => {
                if let Phase::Calling { partial, .. } = &mut self.phase {
                    self.draft = std::mem::take(partial);
                }
            }
            EventKind::ToolOutput { call, stream, text } | EventKind::ReplProgress { call, stream, text } => {
                if let Some(open) = self.open_call(call) {
                    *open.before.printed.on(*stream) += text.len() as u64;
                }
            }
            EventKind::CallPlaced { call, placement } => {
                if let Some(open) = self.open_call(call) {
                    open.before.placement = Some(placement.clone());
                }
            }
            EventKind::RunHandedOver => self.handed_over = true,
            EventKind::RunRecovered => {
                let is_loss = !std::mem::take(&mut self.handed_over);
                self.recoveries = self.recoveries.saturating_add(u32::from(is_loss));
            }
            EventKind::ThinkingDelta { .. }
            | EventKind::QuestionAnswered(_)
            | EventKind::SessionRecord(_)
            | EventKind::CompactionFailed { .. }
            | EventKind::Notice { .. } => {}
        }
    }

    fn start(&mut self, started: &RunStarted) {
        self.approvals = started.approvals;
        self.waits = started.waits;
        self.structured = started.structured;
        self.keeps_files = self.keeps_files || started.setup.profile == ToolProfile::Harness;
        self.rlm = started.rlm;
        self.messages.clone_from(&started.messages);
        self.window = started.context_window;
        // A reply that may be as long as the window leaves nothing to ask with.
        self.reserve = match started.max_output_tokens {
            most if most < self.window => most,
            _ => self.window / 2,
        };
        self.overhead = started.overhead;
        self.context = self.size_of(&started.messages);
        started.messages.iter().for_each(|message| self.remember_ids(message));
    }

    fn remember_ids(&mut self, message: &Message) {
        self.call_ids.extend(message.tool_calls.iter().map(|call| call.id.clone()));
    }

    /// The size of what the model sees with this conversation, and with what it has not heard yet.
    pub(super) fn size_of(&self, messages: &[Message]) -> ContextSize {
        let mut size = self.overhead;
        messages.iter().chain(&self.unheard).for_each(|message| size.add(message));
        size
    }

    fn append(&mut self, message: &MessageId, text: &str) {
        if let Phase::Calling { called, partial } = &mut self.phase
            && called.message == *message
        {
            partial.push_str(text);
        }
    }

    fn open(&mut self, call: &ToolCall, permission: Option<Permission>) {
        self.tool_calls = self.tool_calls.saturating_add(1);
        self.push(call, permission, false);
    }

    fn push(&mut self, call: &ToolCall, permission: Option<Permission>, is_command: bool) {
        let (call, before) = (call.clone(), Before::default());
        let open = Open { call, permission, before, standing: Standing::Open, is_command };
        match &mut self.phase {
            Phase::Acting { calls } => calls.push(open),
            Phase::Planning { .. }
            | Phase::Fresh
            | Phase::Calling { .. }
            | Phase::Compacting(_)
            | Phase::Ended(_) => {
                self.phase = Phase::Acting { calls: vec![open] };
            }
        }
    }

    /// A call may begin, after those that have begun already.
    fn allow(&mut self, id: &CallId, permission: &Permission) {
        let Phase::Acting { calls } = &mut self.phase else { return };
        let waits = |open: &Open| open.call.id == *id && open.standing == Standing::WithClient;
        let Some(at) = calls.iter().position(waits) else { return };
        let open = calls.remove(at);
        calls.push(Open { standing: Standing::Open, permission: Some(permission.clone()), ..open });
    }

    pub(super) fn open_call(&mut self, id: &CallId) -> Option<&mut Open> {
        let Phase::Acting { calls } = &mut self.phase else { return None };
        calls.iter_mut().find(|open| open.call.id == *id && open.standing != Standing::Ended)
    }

    fn close(&mut self, id: &CallId, result: &ToolResult) {
        let Some(open) = self.open_call(id) else { return };
        open.standing = Standing::Ended;
        let call = open.call.clone();
        self.recoveries = 0;
        self.answer(&call, Self::tool_message(&call, result));
        if result.elapsed.is_some() {
            self.made.insert((call.name, call.arguments));
        }
    }

    fn resolve(&mut self, call: &ToolCall, result: &ToolResult, by_client: bool) {
        let message = match (by_client, &result.error) {
            (true, None) => Message::tool(call.id.clone(), &call.name, &result.data),
            (true, Some(_)) | (false, _) => Self::tool_message(call, result),
        };
        self.answer(call, message);
    }

    /// Puts a result behind the message that asked for it, and behind the results that are there already.
    pub(super) fn answer(&mut self, call: &ToolCall, result: Message) {
        let asks = |message: &Message| message.tool_calls.iter().any(|asked| asked.id == call.id);
        let Some(asked) = self.messages.iter().rposition(asks) else { return };
        let answers =
            self.messages[asked + 1..].iter().take_while(|message| message.role == Role::Tool).count();
        self.context.add(&result);
        // What the client sent marks the call as open.
        self.messages[asked].client_json = None;
        self.messages.insert(asked + 1 + answers, result);
    }

    /// A tool's result as the model reads it: the arguments, what the call was, and then its output.
    pub fn tool_message(call: &ToolCall, result: &ToolResult) -> Message {
        let mut message = Message::tool(call.id.clone(), &call.name, text::tool_message(call, result));
        message.parts.extend(result.images.iter().cloned().map(Part::Image));
        message.parts.extend(result.documents.iter().cloned().map(Part::Document));
        message
    }

    /// The size of the conversation with `more` added.
    pub(super) fn context_with<'a>(&self, more: impl IntoIterator<Item = &'a Message>) -> ContextSize {
        let mut context = self.context;
        for message in more {
            context.add(message);
        }
        context
    }
}

impl Open {
    pub(super) fn run(&self) -> Effect {
        Effect::RunTool {
            call: self.call.clone(),
            permission: self.permission.clone(),
            before: self.before.clone(),
        }
    }
}
