//! Performs what the machines of a run decide: publishes the events of each step, then acts.
//!
//! One driver owns one run, with its subagents. Everything that it starts is a handle in it, so that a driver that
//! ends, for whatever reason, ends all of it.

mod asking;
mod batch;
mod code;
mod form;
mod inputs;
mod using;
mod work;

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{
    AgentId, Before, Effect, Family, Input, LogId, Message, MessageId, Move, Outcome, Permission, Role, Run,
    RunStarted, SummaryRequest, ToolCall, Totals,
};
use model::{Model, ToolSpec};
use store::{Batch, Lease, Spent, Store};
use tokio::time::{Instant, sleep_until};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::Instrument as _;

use code::{Allowed, Code};
use inputs::{Heard, Inputs};
use work::Work;

pub(crate) use batch::{Entry, stamped};
pub(crate) use form::Form;

use crate::{
    runs::{Mail, Progress},
    tools::{CodeInput, Context, Interpreter, Placing, Summarizers, Tools},
};

/// Inputs that are taken into account before their events are published together.
const BATCH: usize = 128;

/// Everything that a run needs from outside.
pub(crate) struct Setup {
    pub log: Arc<dyn Store>,
    /// The right to write the run's log.
    pub lease: Lease,
    pub model: Arc<dyn Model>,
    pub tools: Tools,
    pub specs: Arc<[ToolSpec]>,
    /// What shortens results of tools.
    pub summarizers: Summarizers,
    pub system: String,
    /// The form that the answer must have.
    pub form: Option<Form>,
    /// On whose behalf tools are called.
    pub context: Context,
    /// How the run began, but for its conversation: its subagents begin likewise.
    pub start: RunStarted,
    /// Time that the run may take.
    pub wall_time: Duration,
    /// Cancelled when the run must stop; says why in [`Progress`].
    pub cancel: CancellationToken,
    /// What others see of the run.
    pub progress: Arc<Progress>,
}

impl Setup {
    /// The name of a tool for the metrics: a model could invent names without end.
    fn tools_label(&self, tool: &str) -> String {
        let known = self.specs.iter().any(|spec| spec.name == tool);
        if known { tool.to_owned() } else { "unknown".to_owned() }
    }
}

/// How far a run was driven.
pub(crate) enum Driven {
    ToTheEnd,
    /// Its log was deleted: nobody can go on with it.
    Gone,
    /// It goes on with whoever owns its log next.
    Left(Lease),
}

/// The owner of a run.
pub(crate) struct Driver {
    setup: Setup,
    family: Family,
    position: u64,
    /// What of the run's spending is counted.
    counted: Totals,
    inputs: Inputs,
    /// What goes on for each agent.
    work: HashMap<AgentId, Work>,
    /// What other agents say.
    mail: Mail,
    /// What their code runs in, and asks for.
    code: Code,
    /// What is in flight was begun by another process.
    takes_over: bool,
}

impl Driver {
    /// A driver for a run whose log ends at `position` with the events that `family` has applied.
    pub(crate) fn new(setup: Setup, family: Family, position: u64) -> Self {
        let mail = Mail::new(Arc::clone(&setup.log), setup.lease.log().clone());
        let (inputs, work) = (Inputs::new(), HashMap::new());
        let (code, counted) = (Code::default(), family.main().totals_of_all());
        Self { setup, family, position, counted, inputs, work, mail, code, takes_over: false }
    }

    /// The same where the agent works by code, over this input.
    pub(crate) fn with_input(mut self, input: CodeInput) -> Self {
        let main = AgentId::main();
        let interpreter = Interpreter::new(self.interpreter_name(&main), input, self.takes_over);
        self.code.interpreters.insert(main, interpreter);
        self
    }

    /// A driver for a run that another process has left.
    pub(crate) fn taking_over(setup: Setup, family: Family, position: u64) -> Self {
        Self { takes_over: true, ..Self::new(setup, family, position) }
    }

    /// Drives the run to its end, or as far as it can. Everything that goes on is dropped with this, and left as it is
    /// elsewhere.
    pub(crate) async fn drive(mut self) -> Driven {
        match self.go_on().await {
            Ok(true) => {}
            Ok(false) => return Driven::Left(self.setup.lease),
            Err(store::Error::UnknownLog(_)) => {
                tracing::info!("a run was deleted while it went on");
                self.setup.tools.close_session(&self.setup.context).await;
                return Driven::Gone;
            }
            Err(error) => {
                // Whatever the log has not taken has not happened: nobody has seen more of this run.
                tracing::error!(%error, "a run cannot publish and is left");
                self.setup.context.leaving.cancel();
                return Driven::Left(self.setup.lease);
            }
        }
        let outcome = self.family.main().outcome().unwrap_or(Outcome::Failed);
        self.setup.progress.ended(outcome);
        if !self.leaves_files(outcome).await {
            self.setup.tools.close_session(&self.setup.context).await;
        }
        Driven::ToTheEnd
    }

    /// Whether they stay for the next run of the session.
    async fn leaves_files(&self, outcome: Outcome) -> bool {
        if self.setup.start.setup.keeper.is_empty() {
            return outcome == Outcome::Suspended;
        }
        // Whoever deleted it may have done so before the last call of this run.
        let session = self.setup.log.entry(&LogId::new(&*self.setup.context.session)).await;
        !matches!(session, Err(store::Error::UnknownLog(_)))
    }

    /// False if the run is to be left before its end.
    async fn go_on(&mut self) -> Result<bool, store::Error> {
        let moves = self.begin();
        let mut ended = self.take(moves).await?;
        self.takes_over = false;
        while !ended {
            let Some(moves) = self.next().await else {
                let moves = self.family.step_all(&Input::HandedOver);
                self.take(moves).await?;
                return Ok(false);
            };
            ended = self.take(moves).await?;
        }
        Ok(true)
    }

    fn begin(&mut self) -> Vec<Move> {
        let main = AgentId::main();
        let mut moves = match self.takes_over {
            true => self.family.step_all(&Input::TakenOver),
            false => self.family.step(&main, Input::Begin),
        };
        let mut start = Move { agent: main, parent: None, step: domain::Step::default() };
        if moves.is_empty() {
            // It goes on with calls that a person allowed.
            start.step.effects = self.family.main().in_flight();
        }
        start.step.effects.push(Effect::ArmTimer(self.setup.wall_time));
        moves.push(start);
        moves
    }

    /// Waits for inputs and lets the machines decide: as many as are there, so that they share a publication.
    /// `None` once the run is to be left.
    async fn next(&mut self) -> Option<Vec<Move>> {
        let timer = self.work.iter().filter_map(|(agent, work)| Some((work.timer?, agent.clone()))).min();
        let first = tokio::select! {
            biased;
            () = self.setup.context.leaving.cancelled() => return None,
            () = self.setup.cancel.cancelled() => {
                let reason = self.setup.progress.cancel_reason();
                (AgentId::main(), Heard::Input(Box::new(Input::Cancelled { reason })))
            }
            agent = alarm(timer) => {
                self.work_of(&agent).timer = None;
                (agent, Heard::Input(Box::new(Input::TimeUp)))
            }
            // Before what the run itself does, of which there may always be more.
            inputs = self.mail.next(&self.setup.progress) => {
                return Some(inputs.iter().flat_map(|input| self.family.told(input)).collect());
            }
            input = self.inputs.next() => input,
        };
        let mut moves = self.hear(first);
        for _ in 1..BATCH {
            let Some(next) = self.inputs.at_hand() else { break };
            moves.extend(self.hear(next));
        }
        Some(moves)
    }

    fn hear(&mut self, (agent, heard): (AgentId, Heard)) -> Vec<Move> {
        match heard {
            Heard::Asked(call, question) => self.asked(&agent, call, *question),
            Heard::Placed(call, Placing { placement, noted }) => {
                let moves = self.family.step(&agent, Input::Placed { call: call.clone(), placement });
                if !moves.is_empty() {
                    self.work_of(&agent).placing.insert(call, noted);
                }
                moves
            }
            Heard::Answered(answered, usage, _in_flight) => {
                self.family.step(&agent, Input::QuestionAnswered(*answered, usage))
            }
            Heard::Input(input) => {
                if let Input::CodeEnded { call, .. } = &*input {
                    self.work_of(&agent).answering.remove(call);
                }
                self.family.step(&agent, *input)
            }
        }
    }

    /// Publishes, then acts. True once the run has ended.
    async fn take(&mut self, mut moves: Vec<Move>) -> Result<bool, store::Error> {
        let mut ended = false;
        while !moves.is_empty() {
            let entries: Vec<_> = moves.iter_mut().flat_map(Entry::of).collect();
            self.setup.context.remember(entries.iter().map(|entry| &entry.kind));
            self.publish(batch::merged(entries)).await?;
            let mut more = Vec::new();
            for Move { agent, step, .. } in moves {
                for effect in step.effects {
                    ended |= agent == AgentId::main() && effect == Effect::Finish;
                    more.extend(self.perform(&agent, effect));
                }
            }
            moves = more;
        }
        Ok(ended)
    }

    async fn publish(&mut self, entries: Vec<Entry>) -> Result<(), store::Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let events = stamped(&self.setup.context.run, self.position, entries);
        let last = self.position + events.len() as u64;
        let totals = self.family.main().totals_of_all();
        let batch = Batch::new(self.position, events).taking(self.mail.taken());
        let batch = batch.costing(spent(self.counted, totals));
        self.setup.log.append(&self.setup.lease, batch).await?;
        (self.position, self.counted) = (last, totals);
        self.setup.progress.update(self.family.main(), last);
        Ok(())
    }

    /// Acts for an agent; what follows at once is returned.
    fn perform(&mut self, agent: &AgentId, effect: Effect) -> Vec<Move> {
        match effect {
            Effect::CallModel { message, offer_tools, note } => {
                let form = self.setup.form.clone().filter(|_| *agent == AgentId::main());
                let request = self.request(agent, form.as_ref(), offer_tools, note);
                self.ask(agent, request, form, message);
            }
            Effect::Summarize { message } => {
                let Some(run) = self.family.get(agent) else { return Vec::new() };
                let SummaryRequest { instruction, transcript } = run.summary_request();
                let request = model::Request {
                    system: instruction.to_owned(),
                    messages: vec![Message::text(Role::User, transcript)],
                    ..model::Request::default()
                };
                self.ask(agent, request, None, message);
            }
            Effect::StopModel => self.work_of(agent).asking = None,
            Effect::Plan(calls) => {
                let (tools, context) = (self.setup.tools.clone(), self.setup.context.clone());
                let planning = using::plan(tools, calls, context, self.inputs.of(agent));
                self.work_of(agent).planning =
                    Some(AbortOnDropHandle::new(tokio::spawn(planning.in_current_span())));
            }
            Effect::StopPlan => self.work_of(agent).planning = None,
            Effect::RunTool { call, permission, before } => {
                if self.setup.start.rlm.is_some() {
                    match self.is_command(agent, &call.id) {
                        true => self.run_command(agent, Allowed { call, permission, before }),
                        false => self.run_code(agent, call, before),
                    }
                    return Vec::new();
                }
                return match self.setup.tools.task(&call) {
                    Some(_) if self.family.has_started(&call.id) => Vec::new(),
                    Some(task) => self.family.start(agent, &call.id, &task, &self.setup.start),
                    None => {
                        self.run_tool(agent, call, permission, before);
                        Vec::new()
                    }
                };
            }
            Effect::SendCall(call) => {
                if let Some(noted) = self.work_of(agent).placing.remove(&call) {
                    // A call that has ended meanwhile goes nowhere.
                    let _ = noted.send(());
                }
            }
            Effect::AwaitClient { call, time } => {
                let expiring = using::expire(call.clone(), time, self.inputs.of(agent));
                let expiring = AbortOnDropHandle::new(tokio::spawn(expiring));
                self.work_of(agent).using.insert(call, expiring);
            }
            Effect::StopTool(call) => {
                let work = self.work_of(agent);
                drop((work.using.remove(&call), work.answering.remove(&call), work.placing.remove(&call)));
            }
            Effect::AnswerCode { call, question, answer } => self.answer(agent, call, &question, answer),
            Effect::ArmTimer(after) => self.work_of(agent).timer = Some(Instant::now() + after),
            Effect::Finish => {
                self.work.remove(agent);
                self.end_interpreter(agent);
            }
        }
        Vec::new()
    }

    fn work_of(&mut self, agent: &AgentId) -> &mut Work {
        self.work.entry(agent.clone()).or_default()
    }

    fn ask(&mut self, agent: &AgentId, request: model::Request, form: Option<Form>, message: MessageId) {
        let model = Arc::clone(&self.setup.model);
        let asking = asking::ask(model, request, form, message, self.inputs.of(agent));
        self.work_of(agent).asking = Some(AbortOnDropHandle::new(tokio::spawn(asking.in_current_span())));
    }

    fn run_tool(&mut self, agent: &AgentId, call: ToolCall, permission: Option<Permission>, before: Before) {
        let id = call.id.clone();
        let label = self.setup.tools_label(&call.name);
        let reading = using::Reading {
            summarizer: self.setup.summarizers.of(&call.name),
            sees_images: self.setup.model.info().sees_images != Some(false),
        };
        let running = self.setup.tools.run(call, permission, before, &self.setup.context);
        let tools = self.setup.tools.clone();
        let using = using::follow(tools, running, id.clone(), label, reading, self.inputs.of(agent));
        let using = AbortOnDropHandle::new(tokio::spawn(using.in_current_span()));
        self.work_of(agent).using.insert(id, using);
    }

    fn run_code(&mut self, agent: &AgentId, call: ToolCall, before: Before) {
        let (id, interpreter) = (call.id.clone(), self.interpreter(agent));
        let running = self.setup.tools.run_code(call, interpreter.clone(), before, &self.setup.context);
        let using = using::follow_code(running, id.clone(), interpreter, self.inputs.of(agent));
        let using = AbortOnDropHandle::new(tokio::spawn(using.in_current_span()));
        self.work_of(agent).using.insert(id, using);
    }

    fn request(
        &self,
        agent: &AgentId,
        form: Option<&Form>,
        offer_tools: bool,
        note: Option<String>,
    ) -> model::Request {
        let specs = if offer_tools { self.specs(agent) } else { Arc::default() };
        // With tools on offer, a form that must be kept would keep some models from using them.
        let last_word = specs.is_empty();
        let form = form.filter(|form| last_word || !form.strict);
        let mut messages = self.family.get(agent).map(Run::prompt).unwrap_or_default();
        messages.extend(note.map(|note| Message::text(Role::User, note)));
        model::Request {
            system: self.setup.system.clone(),
            messages,
            tools: specs,
            response_format: form.map(|form| form.format.clone()),
            effort: self.setup.start.setup.effort,
        }
    }

    fn specs(&self, agent: &AgentId) -> Arc<[ToolSpec]> {
        if self.family.may_start(agent) {
            return Arc::clone(&self.setup.specs);
        }
        let others = self.setup.specs.iter().filter(|spec| !self.setup.tools.starts_agents(&spec.name));
        others.cloned().collect()
    }
}

/// What was spent between two times.
fn spent(before: Totals, now: Totals) -> Spent {
    Spent {
        tokens: now.tokens().saturating_sub(before.tokens()),
        cost_usd: (now.cost_usd - before.cost_usd).max(0.0),
    }
}

/// Waits until the timer of an agent rings.
async fn alarm(timer: Option<(Instant, AgentId)>) -> AgentId {
    match timer {
        Some((at, agent)) => {
            sleep_until(at).await;
            agent
        }
        None => std::future::pending().await,
    }
}
