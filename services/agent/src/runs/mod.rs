//! Runs as objects: started, listed, watched, cancelled.

mod heart;
mod open_calls;
mod progress;
mod reader;
mod table;

use std::sync::Arc;

use bytes::Bytes;
use domain::{
    AgentId, ClientTool, ContextSize, Event, EventKind, Image, Limits, LogId, Message, Part, Permission, Run,
    RunId, RunStarted, Timestamp, ToolCall, tokens,
};
use model::{Catalogue, Model, UnknownModel};
use runtime::clock;
use store::{Creation, Kind, Lease, Meta, NewLog, Post, Store};
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;
use uuid::Uuid;

use crate::{
    config::Config,
    driver::{Driver, Form, Setup},
    prompt::{File, Prompt, Sections},
    telemetry,
    tools::{AlertHistory, Context, NoExecutor, Tools, Unusable},
};

use heart::Heart;
use open_calls::Settled;
pub(crate) use open_calls::{Brought, Decision};
pub(crate) use progress::{Progress, State};
pub(crate) use reader::Reader;
use table::{Seat, Table};

/// A question, as the agent takes it.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub text: String,
    pub history: Vec<Message>,
    pub model: Option<String>,
    pub images: Vec<Image>,
    pub client_tools: Vec<ClientTool>,
    /// What the client brings for calls that an earlier run left open.
    pub brought: Brought,
    /// Whether the client can put a call to a person.
    pub approvals: bool,
    /// Signed standing permissions.
    pub standing: Vec<Bytes>,
    /// The session that they belong to.
    pub session: String,
    pub form: Option<Form>,
    pub sections: Sections,
    pub files: Vec<File>,
    /// Alerts that the model is told of.
    pub alert_history: Option<AlertHistory>,
    pub additional_system_prompt: String,
    pub limits: Limits,
    pub account: String,
    pub principal: String,
}

/// Why a run does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Model(#[from] UnknownModel),
    #[error(
        "the model `{model}` cannot see images, and the conversation has some; models that may see them: {others}"
    )]
    Blind {
        model: String,
        /// Names of models that may do better.
        others: String,
    },
    #[error(transparent)]
    ClientTool(#[from] Unusable),
    #[error("there is no question, and the history has no open call to go on with")]
    NothingToDo,
    #[error(transparent)]
    Executor(#[from] NoExecutor),
    #[error("{0} runs go on already, which is this agent's limit; try again later")]
    TooMany(usize),
    #[error("this agent is shutting down")]
    ShuttingDown,
    #[error("the run could not be written to its log: {0}")]
    Log(#[from] store::Error),
}

/// All runs of this agent.
pub(crate) struct Runs {
    config: Config,
    models: Catalogue,
    tools: Tools,
    log: Arc<dyn Store>,
    heart: Heart,
    tasks: TaskTracker,
    closing: CancellationToken,
    table: Arc<Table>,
}

impl Runs {
    pub(crate) fn new(config: Config, models: Catalogue, tools: Tools, log: Arc<dyn Store>) -> Self {
        Self {
            config,
            models,
            tools,
            heart: Heart::new(Arc::clone(&log)),
            log,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            table: Arc::default(),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn models(&self) -> &Catalogue {
        &self.models
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    pub(crate) fn log(&self) -> Arc<dyn Store> {
        Arc::clone(&self.log)
    }

    /// Starts a run and begins to read it.
    pub(crate) async fn start(&self, mut question: Question) -> Result<Reader, Refusal> {
        if self.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        let model = self.models.get(question.model.as_deref())?;
        self.check_sight(&*model, &question)?;
        let settled = open_calls::settle(&question.history, &question.brought);
        if question.text.is_empty() && settled.is_empty() {
            return Err(Refusal::NothingToDo);
        }
        let offer = self.tools.offer().await?;
        let result_tokens = self.tool_result_tokens(model.info().context_window);
        let (tools, offer) = self.tools.for_run(question.client_tools.clone(), offer, result_tokens)?;
        let id = RunId::new(format!("run_{}", Uuid::now_v7().simple()));
        let cancel = self.closing.child_token();
        let progress = Arc::new(Progress::new(id.clone(), &question, &model.info().name, cancel.clone()));
        let seat = self.table.admit(&progress, self.config.max_runs).map_err(Refusal::TooMany)?;

        let limits = question.limits;
        let context = Context {
            run: id.clone(),
            account: question.account.clone(),
            principal: question.principal.clone(),
            session: std::mem::take(&mut question.session),
            standing: standing(std::mem::take(&mut question.standing), &settled),
            deadline: Instant::now() + limits.wall_time + limits.answer_time,
        };
        if let Some(wanted) = &question.alert_history {
            question.files.push(tools.alert_history(wanted, &offer, &context).await);
        }
        let matching = match question.sections.offer_runbooks() {
            true => self.config.runbooks.matching(&question.text),
            false => Vec::new(),
        };
        let prompt = Prompt {
            sections: &question.sections,
            cluster_name: self.config.cluster_name.as_deref(),
            offer: &offer,
            runbooks: &self.config.runbooks,
            matching: &matching,
            addition: &question.additional_system_prompt,
            files: &question.files,
            now: clock::unix_nanos(),
        };
        let system = prompt.system();
        let started = started(&question, &*model, &prompt, &system);
        let mut run = Run::new(question.limits);
        let mut events = vec![EventKind::RunStarted(started)];
        for settled in settled {
            events.push(self.settled(settled, &tools, &context).await?);
        }
        events.iter().for_each(|event| run.apply(event));
        let position = events.len() as u64;
        let lease = self.create(&progress, stamped(&id, events)).await?;
        let setup = Setup {
            log: self.log(),
            lease,
            tools,
            specs: Arc::clone(&offer.specs),
            system,
            form: question.form,
            context,
            model,
            wall_time: limits.wall_time,
            cancel,
            progress: Arc::clone(&progress),
        };
        let reader = Reader::new(Arc::clone(&progress), self.config.disconnect_grace);
        self.spawn(Driver::new(setup, run, position), progress, seat);
        Ok(reader)
    }

    async fn create(&self, run: &Progress, events: Vec<Event>) -> Result<Lease, store::Error> {
        let meta = Meta {
            account: run.account.clone(),
            kind: Kind::Run,
            title: run.question.clone(),
            details: Vec::new(),
        };
        let (id, owner) = (LogId::from(&run.id), self.heart.beats().await?);
        match self.log.create(NewLog { id, owner, meta, idempotency: None, events }).await? {
            Creation::New(lease) => Ok(lease),
            Creation::Existing(log) | Creation::Mismatch(log) => Err(store::Error::Exists(log)),
        }
    }

    /// Refuses images for a model that is known not to see them.
    fn check_sight(&self, model: &dyn Model, question: &Question) -> Result<(), Refusal> {
        let has_image = |message: &Message| message.parts.iter().any(|part| matches!(part, Part::Image(_)));
        let has_images = !question.images.is_empty() || question.history.iter().any(has_image);
        if !has_images || model.info().sees_images != Some(false) {
            return Ok(());
        }
        let others = self.models.models().iter().map(|other| other.info());
        let others = others.filter(|other| other.sees_images != Some(false)).map(|other| other.name.as_str());
        let others = others.collect::<Vec<_>>().join(", ");
        Err(Refusal::Blind {
            model: model.info().name.clone(),
            others: if others.is_empty() { "none".to_owned() } else { others },
        })
    }

    /// The event that settles a call. A permission counts once, and only where the run that asked is known.
    async fn settled(
        &self,
        settled: Settled,
        tools: &Tools,
        context: &Context,
    ) -> Result<EventKind, store::Error> {
        let (call, permission) = match settled {
            Settled::Resolved(event) => return Ok(event),
            Settled::Approved(call, permission) => (call, permission),
        };
        if let Err(why) = self.use_up(&call, &permission, context).await? {
            return Ok(open_calls::refused(call, why));
        }
        let plan = tools.plan(std::slice::from_ref(&call), context).await.into_iter().next();
        let (description, toolset) = plan.map(|plan| (plan.description, plan.toolset)).unwrap_or_default();
        Ok(EventKind::CallApproved { call, description, toolset, permission })
    }

    /// Takes note, in the log of the run that asked, that a call was allowed; the inner error is why it does not count.
    async fn use_up(
        &self,
        call: &ToolCall,
        permission: &Permission,
        context: &Context,
    ) -> Result<Result<(), &'static str>, store::Error> {
        let log = LogId::from(&permission.run);
        match self.log.entry(&log).await {
            Ok(entry) if entry.meta.account == context.account => {}
            Ok(_) | Err(store::Error::UnknownLog(_)) => return Ok(Err(open_calls::FORGOTTEN)),
            Err(error) => return Err(error),
        }
        let taker = context.run.as_str().as_bytes().to_vec();
        match self.log.post(&log, &format!("approved/{}", call.id), taker).await? {
            Post::First => Ok(Ok(())),
            Post::Earlier(_) => Ok(Err(open_calls::USED_UP)),
        }
    }

    fn spawn(&self, driver: Driver, progress: Arc<Progress>, seat: Seat) {
        let span = tracing::info_span!(
            "invoke_agent",
            otel.name = "invoke_agent sleuth",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = "sleuth",
            sleuth.run.id = %progress.id,
        );
        let began = Instant::now();
        let task = async move {
            telemetry::run_started();
            driver.drive().await;
            telemetry::run_ended(progress.outcome(), began.elapsed());
            seat.keep_listed();
        };
        self.tasks.spawn(task.instrument(span));
    }

    fn tool_result_tokens(&self, context_window: u64) -> u64 {
        let share = context_window.saturating_mul(self.config.tool_result_percent) / 100;
        share.min(self.config.tool_result_tokens)
    }

    /// A run of an account. A run of another account does not exist.
    pub(crate) fn get(&self, id: &RunId, account: &str) -> Option<Arc<Progress>> {
        self.table.get(id).filter(|run| run.account == account)
    }

    /// Begins to read a run.
    pub(crate) fn read(&self, run: Arc<Progress>) -> Reader {
        Reader::new(run, self.config.disconnect_grace)
    }

    /// Runs of an account, newest first.
    pub(crate) fn list(&self, account: &str, limit: usize) -> Vec<Arc<Progress>> {
        self.table.newest(limit, |run| run.account == account)
    }

    /// Ends all runs, with some patience.
    pub(crate) async fn shutdown(&self) {
        self.tasks.close();
        if timeout(self.config.drain_time, self.tasks.wait()).await.is_err() {
            self.closing.cancel();
            self.tasks.wait().await;
        }
        self.closing.cancel();
    }
}

fn started(question: &Question, model: &dyn Model, prompt: &Prompt<'_>, system: &str) -> RunStarted {
    let mut messages = question.history.clone();
    if !question.text.is_empty() {
        messages.push(prompt.question(&question.text, question.images.clone()));
    }
    let schemas = prompt.offer.specs.iter().map(|spec| {
        tokens::of_text(&spec.name)
            + tokens::of_text(&spec.description)
            + tokens::of_text(&spec.parameters.to_string())
    });
    let overhead = ContextSize {
        system: tokens::of_text(system),
        tool_schemas: schemas.sum(),
        ..ContextSize::default()
    };
    RunStarted {
        model: model.info().name.clone(),
        messages,
        overhead,
        structured: question.form.as_ref().is_some_and(|form| form.strict),
        client_tools: question.client_tools.clone(),
        runbooks: prompt.matching.to_vec(),
        approvals: question.approvals,
        context_window: model.info().context_window,
        max_output_tokens: model.info().max_output_tokens,
        account: question.account.clone(),
        principal: question.principal.clone(),
    }
}

/// The standing permissions of a run: those of its session, and those that come with its decisions.
fn standing(before: Vec<Bytes>, settled: &[Settled]) -> Arc<[Bytes]> {
    let new = settled.iter().flat_map(|settled| match settled {
        Settled::Approved(_, permission) => permission.standing.as_slice(),
        Settled::Resolved(_) => &[],
    });
    before.into_iter().chain(new.map(|grant| Bytes::copy_from_slice(grant))).collect()
}

/// The first events of a run.
fn stamped(run: &RunId, kinds: Vec<EventKind>) -> Vec<Event> {
    let time = Timestamp(clock::unix_nanos());
    let stamped = kinds.into_iter().zip(1..).map(|(kind, position)| {
        let agent = AgentId::main();
        Event { run: run.clone(), position, time, agent, parent: None, kind }
    });
    stamped.collect()
}
