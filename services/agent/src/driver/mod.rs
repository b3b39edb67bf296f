//! Performs what a run's machine decides: publishes the events of each step, then acts.
//!
//! One driver owns one run. Everything that it starts is a handle in it, so that a driver that ends, for
//! whatever reason, ends all of it.

mod asking;
mod batch;
mod form;
mod using;

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{
    AgentId, CallId, Effect, Event, EventKind, Input, Message, MessageId, Permission, Printed, Role, Run,
    Step, SummaryRequest, Timestamp, ToolCall,
};
use model::{Model, ToolSpec};
use runtime::clock;
use store::{Batch, Lease, Store};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::Instrument as _;

pub(crate) use form::Form;

use crate::{
    runs::{Mail, Progress},
    tools::{Context, Tools},
};

/// Inputs that wait for the machine; whoever makes more of them waits.
const INBOX: usize = 256;
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
    pub system: String,
    /// The form that the answer must have.
    pub form: Option<Form>,
    /// On whose behalf tools are called.
    pub context: Context,
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

/// The owner of a run.
pub(crate) struct Driver {
    setup: Setup,
    run: Run,
    position: u64,
    inbox: mpsc::Receiver<Input>,
    inputs: mpsc::Sender<Input>,
    asking: Option<AbortOnDropHandle<()>>,
    planning: Option<AbortOnDropHandle<()>>,
    using: HashMap<CallId, AbortOnDropHandle<()>>,
    timer: Option<Instant>,
    /// What other agents say.
    mail: Mail,
    /// What is in flight was begun by another process.
    takes_over: bool,
}

impl Driver {
    /// A driver for a run whose log ends at `position` with the events that `run` has applied.
    pub(crate) fn new(setup: Setup, run: Run, position: u64) -> Self {
        let (inputs, inbox) = mpsc::channel(INBOX);
        let mail = Mail::new(Arc::clone(&setup.log), setup.lease.log().clone());
        Self {
            setup,
            mail,
            run,
            position,
            inbox,
            inputs,
            asking: None,
            planning: None,
            using: HashMap::new(),
            timer: None,
            takes_over: false,
        }
    }

    /// A driver for a run that another process has left.
    pub(crate) fn taking_over(setup: Setup, run: Run, position: u64) -> Self {
        Self { takes_over: true, ..Self::new(setup, run, position) }
    }

    /// Drives the run to its end.
    pub(crate) async fn drive(mut self) {
        let mut step = self.run.step(if self.takes_over { Input::TakenOver } else { Input::Begin });
        if step == Step::default() {
            // It goes on with calls that a person allowed.
            step.effects = self.run.in_flight();
        }
        step.effects.push(Effect::ArmTimer(self.setup.wall_time));
        let mut ended = self.take(step).await;
        self.takes_over = false;
        while !ended {
            let Some(step) = self.next().await else {
                // Everything that goes on is dropped with this, and left as it is elsewhere.
                return self.leave().await;
            };
            ended = self.take(step).await;
        }
        self.setup.progress.ended(self.run.outcome());
    }

    /// Leaves the run to another agent.
    async fn leave(self) {
        if let Err(error) = self.setup.log.release(self.setup.lease.clone()).await {
            tracing::warn!(%error, "a run is left, and its log does not know");
        }
    }

    /// Waits for inputs and lets the machine decide: as many as are there, so that they share a publication.
    /// `None` once the run is to be left.
    async fn next(&mut self) -> Option<Step> {
        let first = tokio::select! {
            biased;
            () = self.setup.context.leaving.cancelled() => return None,
            () = self.setup.cancel.cancelled() => Input::Cancelled { reason: self.setup.progress.cancel_reason() },
            () = alarm(self.timer) => {
                self.timer = None;
                Input::TimeUp
            }
            Some(input) = self.inbox.recv() => input,
            inputs = self.mail.next(&self.setup.progress) => return Some(self.run.step_all(inputs)),
        };
        let mut step = self.run.step(first);
        for _ in 1..BATCH {
            let Ok(input) = self.inbox.try_recv() else { break };
            step.then(self.run.step(input));
        }
        Some(step)
    }

    /// Publishes, then acts. True once the run has ended.
    async fn take(&mut self, step: Step) -> bool {
        let Step { events, effects } = step;
        self.setup.context.remember(&events);
        if let Err(error) = self.publish(batch::merged(events)).await {
            // Whatever the log has not taken has not happened: nobody may see more of this run.
            tracing::error!(%error, "a run cannot publish and ends");
            return true;
        }
        let mut ended = false;
        for effect in effects {
            ended |= self.perform(effect);
        }
        ended
    }

    async fn publish(&mut self, kinds: Vec<EventKind>) -> Result<(), store::Error> {
        if kinds.is_empty() {
            return Ok(());
        }
        let time = Timestamp(clock::unix_nanos());
        let run = &self.setup.context.run;
        let events: Vec<_> = kinds
            .into_iter()
            .zip(self.position + 1..)
            .map(|(kind, position)| {
                let agent = AgentId::main();
                Event { run: run.clone(), position, time, agent, parent: None, kind }
            })
            .collect();
        let last = self.position + events.len() as u64;
        let batch = Batch::new(self.position, events).taking(self.mail.taken());
        self.setup.log.append(&self.setup.lease, batch).await?;
        self.position = last;
        self.setup.progress.update(&self.run, last);
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::CallModel { message, offer_tools, note } => {
                let request = self.request(offer_tools, note);
                self.ask(request, self.setup.form.clone(), message);
            }
            Effect::Summarize { message } => {
                let SummaryRequest { instruction, transcript } = self.run.summary_request();
                let request = model::Request {
                    system: instruction.to_owned(),
                    messages: vec![Message::text(Role::User, transcript)],
                    ..model::Request::default()
                };
                self.ask(request, None, message);
            }
            Effect::StopModel => self.asking = None,
            Effect::Plan(calls) => {
                let planning = using::plan(
                    self.setup.tools.clone(),
                    calls,
                    self.setup.context.clone(),
                    self.inputs.clone(),
                );
                self.planning = Some(AbortOnDropHandle::new(tokio::spawn(planning.in_current_span())));
            }
            Effect::StopPlan => self.planning = None,
            Effect::RunTool { call, permission, printed } => {
                let before = self.takes_over.then_some(printed);
                self.run_tool(call, permission, before);
            }
            Effect::AwaitClient { call, time } => {
                let expiring = using::expire(call.clone(), time, self.inputs.clone());
                self.using.insert(call, AbortOnDropHandle::new(tokio::spawn(expiring)));
            }
            Effect::StopTool(call) => drop(self.using.remove(&call)),
            Effect::ArmTimer(after) => self.timer = Some(Instant::now() + after),
            Effect::Finish => return true,
        }
        false
    }

    fn ask(&mut self, request: model::Request, form: Option<Form>, message: MessageId) {
        let asking = asking::ask(Arc::clone(&self.setup.model), request, form, message, self.inputs.clone());
        self.asking = Some(AbortOnDropHandle::new(tokio::spawn(asking.in_current_span())));
    }

    fn run_tool(&mut self, call: ToolCall, permission: Option<Permission>, before: Option<Printed>) {
        let id = call.id.clone();
        let label = self.setup.tools_label(&call.name);
        let running = self.setup.tools.run(call, permission, before, &self.setup.context);
        let tools = self.setup.tools.clone();
        let using = using::follow(tools, running, id.clone(), label, self.inputs.clone());
        self.using.insert(id, AbortOnDropHandle::new(tokio::spawn(using)));
    }

    fn request(&self, offer_tools: bool, note: Option<String>) -> model::Request {
        // With tools on offer, a form that must be kept would keep some models from using them.
        let last_word = !offer_tools || self.setup.specs.is_empty();
        let form = self.setup.form.as_ref().filter(|form| last_word || !form.strict);
        let mut messages = self.run.prompt();
        messages.extend(note.map(|note| Message::text(Role::User, note)));
        model::Request {
            system: self.setup.system.clone(),
            messages,
            tools: if offer_tools { Arc::clone(&self.setup.specs) } else { Arc::default() },
            response_format: form.map(|form| form.format.clone()),
        }
    }
}

async fn alarm(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
