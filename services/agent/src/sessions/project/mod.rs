//! What happens in the runs of a turn, as events of its session: pure, so that whoever takes a session over makes the
//! same events of the same runs.

mod act;
mod step;
mod task;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::{
    AgentId, AssistantMessage, ClientToolMode, CompactionDone, CompactionStarted, Event, EventKind, Exchange,
    FailureCode, Part, RunStarted, Thinking, Timestamp, ToolCall, Totals,
};
use wire::session::{
    Context, ContextCompacted, ContextCompacting, Failure, LlmGeneration, ReasonItem, Usage,
    context_compacted,
    event::Data,
    llm_generation::{Compaction, Retry},
};

use super::{
    failure::{Asked, Cause, Disclosure},
    ids, words,
};

use act::Act;
pub(super) use act::Settlement;
use step::Step;
use task::Task;

/// An event that is to be.
pub(super) type Draft = (Context, Data);

/// The provider of each model.
pub(super) type Providers = Arc<HashMap<String, String>>;

/// What is said of a call that a person allowed.
const APPROVED: &str = "Approved: it runs now";

/// How the conversation is made shorter, in the protocol's words.
const STRATEGY: &str = "summarize";

/// What all events of a turn say of it.
#[derive(Clone, Debug)]
pub(super) struct TurnIds {
    pub session: String,
    pub turn: String,
    pub input_message: String,
    pub harness: String,
    pub agent: String,
}

/// What has come together in a turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Model calls that began.
    pub begun: u32,
    /// Model calls that were answered.
    pub answered: u32,
    pub tool_calls: u32,
    pub issues: u32,
    pub first_text: Option<Timestamp>,
    /// The last message of the agent.
    pub final_message: Option<String>,
    before: Usage,
    run: Totals,
    /// What the agents of the run's agent took.
    others: HashMap<AgentId, Totals>,
}

impl Tally {
    /// What all model calls took.
    pub(super) fn usage(&self) -> Usage {
        let run = self.others.values().fold(self.run, |totals, other| totals.and(*other));
        words::sum(self.before, words::totals(run))
    }
}

/// How a run of the turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// It waits for the client.
    Suspended,
    Answered {
        answer: String,
        reason: String,
    },
    /// Without an answer; what was said of it.
    Failed(Cause, String),
    /// It was lost again and again without coming further.
    Sealed(String),
    Cancelled {
        reason: String,
    },
}

/// The runs of a turn, as far as they were seen.
pub(super) struct Projection {
    ids: TurnIds,
    disclosure: Disclosure,
    providers: Providers,
    run: String,
    model: String,
    client_tools: HashSet<String>,
    pub(super) tally: Tally,
    /// The model call that goes on.
    step: Option<Step>,
    /// The tool calls that go on.
    act: Option<Act>,
    /// The agents of the agent that go on.
    tasks: HashMap<AgentId, Task>,
    usage: domain::Usage,
    compacting: Option<(Timestamp, u64)>,
    /// What was done with the conversation since the model was last asked.
    compaction: Option<Compaction>,
    /// The run was taken over and has not come further since.
    recovered: bool,
    /// Why the client wants the turn to stop, if it does.
    cancelled: Option<String>,
    ending: Option<Ending>,
}

impl Projection {
    pub(super) fn new(ids: TurnIds, disclosure: Disclosure, providers: Providers) -> Self {
        Self {
            ids,
            disclosure,
            providers,
            run: String::new(),
            model: String::new(),
            client_tools: HashSet::new(),
            tally: Tally::default(),
            step: None,
            act: None,
            tasks: HashMap::new(),
            usage: domain::Usage::default(),
            compacting: None,
            compaction: None,
            recovered: false,
            cancelled: None,
            ending: None,
        }
    }

    pub(super) fn ids(&self) -> &TurnIds {
        &self.ids
    }

    pub(super) fn disclosure(&self) -> Disclosure {
        self.disclosure
    }

    /// From now on, what is given up is given up because the client wants it.
    pub(super) fn cancels(&mut self, reason: &str) {
        self.cancelled = Some(reason.to_owned());
    }

    fn provider(&self) -> Option<String> {
        self.providers.get(&self.model).cloned()
    }

    pub(super) fn cancelled(&self) -> Option<&str> {
        self.cancelled.as_deref()
    }

    /// The context of what belongs to the turn as a whole.
    pub(super) fn context(&self) -> Context {
        Context {
            turn_id: self.ids.turn.clone(),
            input_message_id: self.ids.input_message.clone(),
            ..Context::default()
        }
    }

    /// The context of a step, or of an operation in it.
    fn within(&self, exec: &str, span: &str, parent: &str) -> Context {
        Context {
            exec_id: exec.to_owned(),
            trace_id: self.ids.turn.clone(),
            span_id: span.to_owned(),
            parent_span_id: parent.to_owned(),
            ..self.context()
        }
    }

    /// The events that an event of a run becomes.
    pub(super) fn apply(&mut self, event: &Event) -> Vec<Draft> {
        let mut out = Vec::new();
        if event.agent != AgentId::main() {
            self.task(event, &mut out);
            return out;
        }
        let recovered = std::mem::take(&mut self.recovered);
        match &event.kind {
            EventKind::RunStarted(started) => self.run_started(event, started),
            EventKind::RunRecovered => {
                self.recovered = true;
                if let Some(act) = &mut self.act {
                    act.lose();
                }
            }
            // Its recovery follows.
            EventKind::RunHandedOver => {}
            EventKind::ModelCalled(called) => self.called(event, called, &mut out),
            EventKind::AttemptAbandoned { .. } => self.recovered = recovered,
            EventKind::ThinkingDelta { message, text } => self.thought(message, text, &mut out),
            EventKind::TextDelta { message, text } => self.said(event.time, message, text, &mut out),
            EventKind::UsageReported(report) => {
                self.usage = report.usage;
                self.tally.run = report.totals;
            }
            EventKind::AssistantMessage(assistant) => self.replied(event, assistant, &mut out),
            EventKind::ToolStarted { call, description, toolset, .. } => {
                self.tool_started(event.time, call, description, toolset.as_deref(), &mut out);
            }
            EventKind::ToolOutput { call, stream, text } => self.printed(call, *stream, text, &mut out),
            EventKind::ToolFinished { call, result } => {
                self.recovered = recovered;
                self.tool_finished(event.time, call, result, &mut out);
            }
            EventKind::CallResolved { call, result, .. } => {
                self.tool_finished(event.time, &call.id, result, &mut out);
            }
            EventKind::ClientToolRequested { call } => {
                if let Some(act) = &mut self.act {
                    act.wants_client(call);
                }
            }
            EventKind::ApprovalRequested { call, approval } => self.asks_person(call, approval, &mut out),
            EventKind::CallApproved { call: ToolCall { id: call, .. }, .. }
            | EventKind::CallAllowed { call, .. } => {
                if let Some(act) = &mut self.act {
                    act.goes_on(call);
                }
                self.progressed(call, APPROVED, &mut out);
            }
            EventKind::CompactionStarted(started) => self.compacts(event.time, started, &mut out),
            EventKind::CompactionDone(done) => self.compacted(event.time, done, &mut out),
            EventKind::RunSuspended => {
                self.wants_client(&mut out);
                self.ending = Some(Ending::Suspended);
            }
            EventKind::RunFinished { answer, reason } => {
                self.ending = Some(Ending::Answered { answer: answer.clone(), reason: reason.clone() });
            }
            EventKind::RunFailed { code, message } => {
                self.fails(event, (*code).into(), message, &mut out);
                self.ending = Some(match code {
                    FailureCode::Internal if recovered => Ending::Sealed(message.clone()),
                    code => Ending::Failed((*code).into(), message.clone()),
                });
            }
            EventKind::RunCancelled { reason } => {
                self.stops(event.time, reason, &mut out);
                self.ending = Some(Ending::Cancelled { reason: reason.clone() });
            }
            EventKind::Steered(_)
            | EventKind::CompactionFailed { .. }
            | EventKind::CallPlaced { .. }
            | EventKind::Notice { .. }
            | EventKind::SessionRecord(_)
            | EventKind::ReplInput { .. }
            | EventKind::ReplProgress { .. }
            | EventKind::QuestionAnswered(_)
            | EventKind::ReplOutput { .. } => {}
        }
        out
    }

    /// How the run ended, if it has.
    pub(super) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    fn run_started(&mut self, event: &Event, started: &RunStarted) {
        self.ending = None;
        event.run.as_str().clone_into(&mut self.run);
        self.model.clone_from(&started.model);
        let paused = started.client_tools.iter().filter(|tool| tool.mode == ClientToolMode::Pause);
        self.client_tools = paused.map(|tool| tool.name.clone()).collect();
        self.tally.before = self.tally.usage();
        self.tally.run = Totals::default();
        self.tally.others.clear();
        self.tasks.clear();
    }

    fn replied(&mut self, event: &Event, assistant: &AssistantMessage, out: &mut Vec<Draft>) {
        let Some(step) = self.close_step(out) else { return };
        self.tally.answered += 1;
        let said = &assistant.message;
        let message = words::spoken(step.message.clone(), event.time, &self.model, said);
        self.tally.final_message = Some(step.message.clone());
        let usage = words::usage(self.usage);
        self.reasoned(&step, said, out);
        let calls: Vec<_> = said.tool_calls.iter().map(words::call).collect();
        let text = said.joined_text();
        let generation = LlmGeneration {
            text: Some(text.clone()).filter(|text| !text.is_empty()),
            tool_calls: calls,
            success: true,
            usage: Some(usage),
            finish_reasons: vec![assistant.finish_reason.clone()],
            response_id: assistant.exchange.response.clone(),
            retry: retry(&assistant.exchange),
            compaction: self.compaction.take(),
            ..self.generation(&step, event.time)
        };
        out.push((
            self.within(&step.exec, &step.span_of("llm"), &step.span),
            Data::LlmGeneration(generation),
        ));
        let completed = self.message_completed(message, Some(usage), None);
        out.push((self.within(&step.exec, &step.span_of("message"), &step.span), completed));
        let ended = step.completed(event.time, &text, said.tool_calls.len(), Some(usage), None);
        out.push((self.within(&step.exec, &step.span, &self.ids.turn), ended));
        self.act(event, &said.tool_calls, out);
    }

    /// The pieces of reasoning that the provider wants to be given back.
    fn reasoned(&self, step: &Step, said: &domain::Message, out: &mut Vec<Draft>) {
        let pieces = said.parts.iter().filter_map(|part| match part {
            Part::Thinking(Thinking { signature: None, redacted: None, .. })
            | Part::Text(_)
            | Part::Image(_)
            | Part::Document(_) => None,
            Part::Thinking(thinking) => Some(thinking),
        });
        for (at, piece) in pieces.enumerate() {
            let item = ReasonItem {
                turn_id: self.ids.turn.clone(),
                provider: self.provider().unwrap_or_default(),
                item_id: ids::named("item_", &format!("{}/{at}", step.message)),
                model: Some(self.model.clone()),
                summary: words::preview(&piece.text).into_iter().collect(),
                token_count: self.usage.reasoning.filter(|_| at == 0),
            };
            out.push((self.within(&step.exec, "", ""), Data::ReasonItem(item)));
        }
    }

    fn generation(&self, step: &Step, now: Timestamp) -> LlmGeneration {
        LlmGeneration {
            model: self.model.clone(),
            provider: self.provider(),
            duration_ms: Some(millis(step.began, now)),
            time_to_first_token_ms: step.first_text.map(|first| millis(step.began, first)),
            ..LlmGeneration::default()
        }
    }

    fn fails(&mut self, event: &Event, cause: Cause, why: &str, out: &mut Vec<Draft>) {
        let step = self.close_step(out);
        if let Some(step) = &step {
            let generation = LlmGeneration {
                error: Some(cause.text(self.disclosure, why)),
                ..self.generation(step, event.time)
            };
            let context = self.within(&step.exec, &step.span_of("llm"), &step.span);
            out.push((context, Data::LlmGeneration(generation)));
        }
        out.push(self.apology(event.time, cause, why));
        if let Some(step) = step {
            let told = cause.text(self.disclosure, why);
            let ended = step.completed(event.time, "", 0, None, Some(&told));
            out.push((self.within(&step.exec, &step.span, &self.ids.turn), ended));
        }
        self.give_up_calls(event.time, out);
    }

    /// A message of the agent that says what went wrong.
    pub(super) fn apology(&self, time: Timestamp, cause: Cause, why: &str) -> Draft {
        let text = cause.text(self.disclosure, why);
        let said = domain::Message::text(domain::Role::Assistant, text);
        let id = ids::named("message_", &format!("{}/{}/apology", self.ids.turn, self.run));
        let message = words::spoken(id, time, &self.model, &said);
        (self.context(), self.message_completed(message, None, Some(self.failure(cause, why))))
    }

    /// What programs are told of it.
    pub(super) fn failure(&self, cause: Cause, why: &str) -> Failure {
        let provider = self.providers.get(&self.model).map(String::as_str);
        cause.failure(self.disclosure, Asked { model: &self.model, provider }, why)
    }

    /// What goes on ends, because the run does.
    fn stops(&mut self, time: Timestamp, why: &str, out: &mut Vec<Draft>) {
        if let Some(step) = self.close_step(out) {
            let ended = step.completed(time, "", 0, None, Some(why));
            out.push((self.within(&step.exec, &step.span, &self.ids.turn), ended));
        }
        self.give_up_calls(time, out);
    }

    fn compacts(&mut self, time: Timestamp, started: &CompactionStarted, out: &mut Vec<Draft>) {
        self.compacting = Some((time, started.messages));
        let compacting = ContextCompacting {
            reason: "proactive_budget".to_owned(),
            strategy: STRATEGY.to_owned(),
            messages_before: started.messages,
            tokens_before: Some(started.tokens),
            model: Some(self.model.clone()),
        };
        out.push((self.context(), Data::ContextCompacting(compacting)));
    }

    fn compacted(&mut self, time: Timestamp, done: &CompactionDone, out: &mut Vec<Draft>) {
        let (began, before) = self.compacting.take().unwrap_or((time, 0));
        let compacted = ContextCompacted {
            strategy_used: STRATEGY.to_owned(),
            messages_before: before,
            messages_after: done.messages.len() as u64,
            duration_ms: millis(began, time),
            tokens_before: Some(done.tokens_before),
            tokens_after: Some(done.tokens_after),
            steps: Vec::new(),
        };
        let ContextCompacted { messages_after, duration_ms, .. } = compacted;
        let step = context_compacted::Step { strategy: STRATEGY.to_owned(), messages_after, duration_ms };
        let compacted = ContextCompacted { steps: vec![step], ..compacted };
        self.compaction = Some(Compaction {
            compacted: true,
            input_tokens_before: compacted.tokens_before,
            input_tokens_after: compacted.tokens_after,
            duration_ms: Some(duration_ms),
        });
        out.push((self.context(), Data::ContextCompacted(compacted)));
    }
}

/// What was asked in vain before a reply.
fn retry(exchange: &Exchange) -> Option<Retry> {
    let total_wait_ms = u64::try_from(exchange.waited.as_millis()).unwrap_or(u64::MAX);
    (exchange.retries > 0).then_some(Retry { attempts: exchange.retries, total_wait_ms })
}

/// What a call says of itself in one line.
fn line(call: &ToolCall, description: &str) -> String {
    if description.is_empty() { call.name.clone() } else { description.to_owned() }
}

/// Time between two moments.
pub(super) fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0) / 1_000_000).unwrap_or_default()
}
