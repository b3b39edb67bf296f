//! How a run begins: with a log that has its question, or with the run of the same request.

use std::sync::Arc;

use bytes::Bytes;
use domain::{
    ContextSize, Event, EventKind, Family, LogId, Message, Part, Role, Run, RunId, RunSetup, RunStarted,
    ToolBrief, ToolProfile, tokens,
};
use model::{Model, ToolSpec};
use runtime::clock;
use store::{BlobId, Creation, Idempotency, Kind, Meta, NewLog};
use tokio::time::Instant;
use tracing::Instrument as _;
use uuid::Uuid;

use super::{
    Progress, Question, Reading, Refusal, Runs, decided,
    open_calls::{self, Settled},
};
use crate::{
    driver::{Driver, Entry, Setup, stamped},
    prompt::{
        Prompt,
        rlm::{self, About},
    },
    tools::{CodeInput, Context, Home, Offer, Rules, Tools},
};

/// Characters of a tool's description that the log of a run keeps.
const BRIEF: usize = 200;

/// What a run works with.
struct Equipment {
    model: Arc<dyn Model>,
    tools: Tools,
    offer: Offer,
    /// Where each call chooses its cluster, the names of all.
    clusters: Vec<String>,
}

impl Runs {
    /// Starts a run and begins to read it. What has begun is never left half-way: to the run, a caller who leaves
    /// meanwhile is a reader who leaves.
    pub(crate) async fn start(self: &Arc<Self>, question: Question) -> Result<Reading, Refusal> {
        let runs = Arc::clone(self);
        let starting = async move { runs.start_whole(question).await };
        // Nothing but the end of the process stops it.
        self.tasks.spawn(starting.in_current_span()).await.unwrap_or(Err(Refusal::ShuttingDown))
    }

    async fn start_whole(&self, mut question: Question) -> Result<Reading, Refusal> {
        if self.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        if let Some(asked) = &question.idempotency
            && let Some(log) = self.log().created(asked).await?
        {
            return self.attach(&log, &question).await;
        }
        let model = self.models.get(question.model.as_deref())?;
        self.check_sight(&*model, &question)?;
        let settled = to_do(&question)?;
        question.limits = self.within_budget(&question.account, question.limits).await?;
        let equipment = self.equip(&mut question, model).await?;
        let id = RunId::new(format!("run_{}", Uuid::now_v7().simple()));
        let cancel = self.closing.child_token();
        let name = &equipment.model.info().name;
        let progress = Arc::new(Progress::new(id.clone(), &question, name, cancel.clone()));
        let seat = self.table.admit(&progress, self.most())?;

        let context = self.context(&mut question, &settled, &progress);
        let Equipment { tools, offer, .. } = &equipment;
        if let Some(wanted) = &question.alert_history {
            question.files.push(tools.alert_history(wanted, offer, &context).await);
        }
        let started = self.started(&question, &equipment, &context);
        let start = RunStarted { messages: Vec::new(), ..started.clone() };
        let taker = decided::taker(&id, question.idempotency.as_ref());
        let mut events = vec![EventKind::RunStarted(started)];
        for settled in settled {
            events.push(self.settled(settled, &taker, tools, &context).await?);
        }
        let (position, mut run) = (events.len() as u64, Run::new(question.limits));
        events.iter().for_each(|event| run.apply(event));
        let events = stamped(&id, 0, events.into_iter().map(Entry::main));
        let lease = match self.create(&progress, question.idempotency.take(), events).await? {
            Creation::New(lease) => lease,
            Creation::Existing(log) => return self.attach(&log, &question).await,
            Creation::Mismatch(_) => return Err(Refusal::OtherRequest),
        };
        let Equipment { model, tools, offer, .. } = equipment;
        let setup = Setup {
            log: self.log(),
            lease,
            tools,
            specs: Arc::clone(&offer.specs),
            summarizers: self.summarizers(&offer),
            system: start.setup.system.clone(),
            form: question.form,
            context,
            model,
            start,
            wall_time: question.limits.wall_time,
            cancel,
            progress: Arc::clone(&progress),
        };
        let reader = self.read_here(Arc::clone(&progress));
        let mut driver = Driver::new(setup, Family::new(run, question.subagents), position);
        if let Some((_, input)) = question.rlm {
            driver = driver.with_input(self.keep_input(LogId::from(&id), input.into()).await);
        }
        self.spawn(driver, progress, seat);
        Ok(Reading::Here(reader))
    }

    /// What a run works with, its own share of it.
    async fn equip(&self, question: &mut Question, model: Arc<dyn Model>) -> Result<Equipment, Refusal> {
        let (tools, clusters) = self.reached(question)?;
        let offer = tools.offer(question.profile).await?;
        let result_tokens = self.tool_result_tokens(model.info().context_window);
        let (tools, offer) =
            tools.for_run(question.client_tools.clone(), offer, result_tokens, question.subagents)?;
        Ok(Equipment { model, tools, offer, clusters })
    }

    /// On whose behalf its tools are called. What only they need is taken out of the question.
    fn context(&self, question: &mut Question, settled: &[Settled], progress: &Progress) -> Context {
        let session = std::mem::take(&mut question.session);
        Context {
            run: progress.id.clone(),
            account: question.account.clone(),
            principal: question.principal.clone(),
            session: match session.is_empty() {
                true => own_session(question.profile, &progress.id),
                false => session,
            },
            profile: question.profile,
            standing: standing(std::mem::take(&mut question.standing), settled),
            headers: std::mem::take(&mut question.headers),
            follows_runbook: false,
            rules: Rules::new(question.permissions.clone()),
            home: Home::at(std::mem::take(&mut question.home)),
            deadline: Instant::now() + question.limits.wall_time + question.limits.answer_time,
            audience: progress.audience(),
            leaving: self.leaving.child_token(),
        }
    }

    /// How the run begins: what the model is told, and everything that whoever takes the run over must know.
    fn started(&self, question: &Question, equipment: &Equipment, context: &Context) -> RunStarted {
        let named = Some(question.cluster.as_str()).filter(|named| !named.is_empty());
        let matching = match question.sections.offer_runbooks() {
            true => self.config.runbooks.matching(&question.text),
            false => Vec::new(),
        };
        let prompt = Prompt {
            sections: &question.sections,
            cluster_name: named.or(self.config.cluster_name.as_deref()),
            clusters: &equipment.clusters,
            offer: &equipment.offer,
            runbooks: &self.config.runbooks,
            matching: &matching,
            addition: &question.additional_system_prompt,
            files: &question.files,
            announces_skills: question.profile == ToolProfile::Harness,
            now: clock::unix_nanos(),
        };
        let system = match question.rlm {
            Some(_) => rlm::system(&question.additional_system_prompt),
            None => prompt.system(),
        };
        started(question, self.config.own_cluster(), equipment, &prompt, system, context)
    }

    /// The tools of the clusters that a question is about, and their names where each call chooses among them. What is
    /// the only one is named from then on. Files are at one cluster, and so is code.
    fn reached(&self, question: &mut Question) -> Result<(Tools, Vec<String>), Refusal> {
        let (account, only, own) = (&question.account, &question.clusters, self.config.own_cluster());
        let named = &question.cluster;
        if !named.is_empty() && !only.is_empty() && !only.contains(named) {
            return Err(Refusal::NotPermitted(named.clone()));
        }
        if named.is_empty() {
            let choice = self.tools.choice(account, only);
            match choice.as_slice() {
                [_, _, ..] if question.profile == ToolProfile::Holmes => {
                    return Ok((self.tools.of_several(account, &choice, &question.labels), choice));
                }
                // Nothing answers yet.
                [] if only.is_empty() || only.iter().any(|name| name == own) => {}
                [] => question.cluster = only.first().cloned().unwrap_or_default(),
                these if these.iter().any(|name| name == own) => {}
                [other] => question.cluster.clone_from(other),
                these => return Err(Refusal::Unnamed(these.join(", "))),
            }
        }
        Ok((self.tools.of(account, &question.cluster, &question.labels)?, Vec::new()))
    }

    /// Keeps the input of a run with its log. Where that fails, it lasts as long as this process.
    async fn keep_input(&self, log: LogId, input: Bytes) -> CodeInput {
        match self.log.put_blob(&log, input.to_vec()).await {
            Ok(blob) => CodeInput::Stored(self.log(), log, blob),
            Err(error) => {
                tracing::warn!(%error, "the input of a run is not kept");
                CodeInput::Text(input)
            }
        }
    }

    async fn create(
        &self,
        run: &Progress,
        idempotency: Option<Idempotency>,
        events: Vec<Event>,
    ) -> Result<Creation, store::Error> {
        let meta = Meta {
            account: run.account.clone(),
            kind: Kind::Run,
            title: run.question.clone(),
            details: Vec::new(),
        };
        let (id, owner) = (LogId::from(&run.id), self.heart.beats().await?);
        self.log.create(NewLog { id, owner, meta, idempotency, events }).await
    }

    /// Begins to read the run that the same request has started before.
    async fn attach(&self, log: &LogId, again: &Question) -> Result<Reading, Refusal> {
        let id = RunId::new(log.as_str());
        match self.find(&id, &again.account).await? {
            Some(found) if self.stays_within(&found, &again.clusters).await? => Ok(self.read(found)),
            Some(_) | None => Err(Refusal::OtherRequest),
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
}

/// The calls that the client settles. Where there are none, something must be asked.
fn to_do(question: &Question) -> Result<Vec<Settled>, Refusal> {
    let settled = open_calls::settle(&question.history, &question.brought);
    let asks = |message: &Message| matches!(message.role, Role::User | Role::Tool);
    let is_asked = !question.text.is_empty() || question.history.last().is_some_and(asks);
    if is_asked || !settled.is_empty() { Ok(settled) } else { Err(Refusal::NothingToDo) }
}

fn started(
    question: &Question,
    own: &str,
    equipment: &Equipment,
    prompt: &Prompt<'_>,
    system: String,
    context: &Context,
) -> RunStarted {
    let mut messages = question.history.clone();
    if !question.text.is_empty() {
        messages.push(match &question.rlm {
            Some(_) => question.plain(),
            None => prompt.question(&question.text, question.media()),
        });
    }
    if let Some((_, input)) = &question.rlm {
        rlm::tell(&mut messages, &About::of(input));
    }
    // What chooses among several clusters is at none of them.
    let cluster = match (question.cluster.as_str(), equipment.clusters.as_slice()) {
        ("", []) => own,
        (named, _) => named,
    };
    let schemas = prompt.offer.specs.iter().map(|spec| {
        tokens::of_text(&spec.name)
            + tokens::of_text(&spec.description)
            + tokens::of_text(&spec.parameters.to_string())
    });
    let overhead = ContextSize {
        system: tokens::of_text(&system),
        tool_schemas: schemas.sum(),
        ..ContextSize::default()
    };
    let info = equipment.model.info();
    RunStarted {
        model: info.name.clone(),
        messages,
        overhead,
        structured: question.form.as_ref().is_some_and(|form| form.strict),
        client_tools: question.client_tools.clone(),
        runbooks: prompt.matching.to_vec(),
        approvals: question.approvals,
        waits: question.waits,
        subagents: question.subagents,
        rlm: question.rlm.as_ref().map(|(rlm, _)| *rlm),
        call: None,
        question: None,
        setup: Box::new(RunSetup {
            system,
            response_format: question.form.as_ref().map(|form| form.format.to_string()).unwrap_or_default(),
            limits: question.limits,
            session: context.session.clone(),
            profile: context.profile,
            context: question.rlm.as_ref().map(|(_, input)| digest(input)).unwrap_or_default(),
            exec_directory: question.exec_directory.clone(),
            home: context.home.instance(),
            cluster: cluster.to_owned(),
            labels: question.labels.clone(),
            clusters: equipment.clusters.clone(),
            standing: context.standing.iter().map(|grant| grant.to_vec()).collect(),
            keeper: question.keeper.clone(),
            permissions: question.permissions.clone(),
            effort: question.effort,
            tools: if question.keeper.is_empty() { Vec::new() } else { briefs(prompt.offer) },
        }),
        context_window: info.context_window,
        max_output_tokens: info.max_output_tokens,
        account: question.account.clone(),
        principal: question.principal.clone(),
    }
}

/// The tools on offer, each in a few words.
fn briefs(offer: &Offer) -> Vec<ToolBrief> {
    let brief = |(spec, toolset): (&ToolSpec, &String)| {
        let line = spec.description.lines().next().unwrap_or_default();
        let description = line.chars().take(BRIEF).collect();
        ToolBrief { name: spec.name.clone(), description, toolset: toolset.clone() }
    };
    offer.specs.iter().zip(offer.toolsets.iter()).map(brief).collect()
}

/// The name of an input among the bodies of a log.
fn digest(input: &str) -> Vec<u8> {
    BlobId::of(input.as_bytes()).0.to_vec()
}

/// The session of a run that belongs to none: tools that keep files need one.
fn own_session(profile: ToolProfile, run: &RunId) -> String {
    match profile {
        ToolProfile::Holmes => String::new(),
        ToolProfile::Harness | ToolProfile::Rlm => run.as_str().to_owned(),
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
