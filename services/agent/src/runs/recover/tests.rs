//! Runs whose agents die, or are taken for dead, at random moments: whoever takes them over brings them to the end
//! that they would have had.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use domain::{CallId, Limits, Message, Outcome, Role, ToolCall, Usage};
use futures_util::{
    FutureExt as _, Stream, StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use model::{Catalogue, Delta, Deltas, Info, Model, Reply, Request as Asked, Settings};
use proptest::prelude::*;
use store::{Memory, Store};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tonic::{Request, Response, Status};
use wire::executor::{
    AnswerHostCallRequest, AnswerHostCallResponse, AttachRequest, CancelRequest, CancelResponse,
    CloseSessionRequest, CloseSessionResponse, EffectClass, Ending, ExecuteEvent, ExecuteRequest, Finished,
    ListToolsRequest, ListToolsResponse, OutputChunk, PlanRequest, PlanResponse, PutBlobRequest,
    PutBlobResponse, Tool, ToolStatus, Verdict,
    execute_event::Kind,
    tool_executor_server::{ToolExecutor, ToolExecutorServer},
};

use super::*;
use crate::{
    config::Config,
    runs::{Brought, Question},
    tools::executors::Discovered,
};

/// Far longer than a run takes, on any machine.
const ENOUGH: Duration = Duration::from_secs(120);
const LOOK: &str = "look";
const CHANGE: &str = "change";
const LOOKED: &str = "it is as it was";

/// A model that says the same to the same conversation.
struct Oracle {
    info: Info,
    dice: Vec<u8>,
}

impl Oracle {
    fn new(dice: &[u8]) -> Arc<Self> {
        let info = Info {
            name: "oracle".to_owned(),
            provider: "builtin".to_owned(),
            id: "oracle".to_owned(),
            context_window: 200_000,
            max_output_tokens: 1000,
            sees_images: None,
        };
        Arc::new(Self { info, dice: dice.to_vec() })
    }

    fn reply(&self, asked: &Asked) -> Reply {
        let turn = asked.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let call = |dice: u8, number: u8| ToolCall {
            id: CallId::new(format!("call_{turn}_{number}")),
            name: if dice.is_multiple_of(2) { LOOK } else { CHANGE }.to_owned(),
            arguments: format!("{{\"round\":{turn}}}"),
        };
        let tool_calls: Vec<_> = match self.dice.get(turn) {
            Some(dice) if !asked.tools.is_empty() => {
                (0..=dice % 3).map(|number| call(*dice, number)).collect()
            }
            Some(_) | None => Vec::new(),
        };
        let text = format!("Round {turn}: I ask for {} things.", tool_calls.len());
        let finish_reason = if tool_calls.is_empty() { "stop" } else { "tool_calls" }.to_owned();
        let message = Message { tool_calls, ..Message::text(Role::Assistant, text) };
        Reply { message, usage: Usage::default(), finish_reason }
    }
}

impl Model for Oracle {
    fn info(&self) -> &Info {
        &self.info
    }

    fn call(&self, request: Asked) -> BoxFuture<'_, Result<Deltas, model::Error>> {
        let reply = self.reply(&request);
        let text = reply.message.joined_text();
        let words: Vec<_> = text.split_inclusive(' ').map(|word| Delta::Text(word.to_owned())).collect();
        let deltas = words.into_iter().chain([Delta::Done(reply)]);
        async move { Ok(slowly(deltas.map(Ok)).boxed()) }.boxed()
    }
}

/// Items with room between them for somebody else to do something.
fn slowly<T: Send + 'static>(
    items: impl IntoIterator<Item = T, IntoIter: Send> + Send + 'static,
) -> impl Stream<Item = T> + Send + 'static {
    stream::iter(items).then(|item| async {
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        item
    })
}

/// An executor that outlives its agents.
#[derive(Clone, Default)]
struct Hands {
    /// How often each execution was given to it, and of which tool.
    begun: Arc<Mutex<HashMap<String, (String, u32)>>>,
}

impl Hands {
    fn begun(&self) -> std::sync::MutexGuard<'_, HashMap<String, (String, u32)>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn events(after: u64) -> BoxStream<'static, Result<ExecuteEvent, Status>> {
    let chunk = |offset| OutputChunk { stream: 1, offset, data: b"it is "[..].into(), command: 0 };
    let finished = Finished {
        status: ToolStatus::Success.into(),
        data: LOOKED.to_owned(),
        ending: Ending::Answered.into(),
        ..Finished::default()
    };
    let kinds = [Kind::Output(chunk(0)), Kind::Output(chunk(6)), Kind::Finished(finished)];
    let events = (1..).zip(kinds).map(|(sequence, kind)| ExecuteEvent { sequence, kind: Some(kind) });
    slowly(events.filter(move |event| event.sequence > after).map(Ok)).boxed()
}

#[tonic::async_trait]
impl ToolExecutor for Hands {
    type ExecuteStream = BoxStream<'static, Result<ExecuteEvent, Status>>;
    type AttachStream = BoxStream<'static, Result<ExecuteEvent, Status>>;

    async fn list_tools(&self, _: Request<ListToolsRequest>) -> Result<Response<ListToolsResponse>, Status> {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            parameters_json: "{}".to_owned(),
            toolset: "hands".to_owned(),
            ..Tool::default()
        };
        let tools = [LOOK, CHANGE].map(tool).to_vec();
        Ok(Response::new(ListToolsResponse {
            tools,
            instance: "one".to_owned(),
            ..ListToolsResponse::default()
        }))
    }

    async fn plan(&self, asked: Request<PlanRequest>) -> Result<Response<PlanResponse>, Status> {
        let effect = if asked.get_ref().tool == LOOK { EffectClass::Read } else { EffectClass::Mutation };
        let (verdict, effect) = (Verdict::Allow.into(), effect.into());
        Ok(Response::new(PlanResponse { verdict, effect, ..PlanResponse::default() }))
    }

    async fn execute(&self, asked: Request<ExecuteRequest>) -> Result<Response<Self::ExecuteStream>, Status> {
        let ExecuteRequest { execution_id, tool, .. } = asked.into_inner();
        self.begun().entry(execution_id).or_insert((tool, 0)).1 += 1;
        Ok(Response::new(events(0)))
    }

    async fn attach(&self, asked: Request<AttachRequest>) -> Result<Response<Self::AttachStream>, Status> {
        let asked = asked.into_inner();
        match self.begun().contains_key(&asked.execution_id) {
            true => Ok(Response::new(events(asked.after_sequence))),
            false => Err(Status::not_found("it never began")),
        }
    }

    async fn answer_host_call(
        &self,
        _: Request<AnswerHostCallRequest>,
    ) -> Result<Response<AnswerHostCallResponse>, Status> {
        Err(Status::unimplemented("nothing asks"))
    }

    async fn cancel(&self, _: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        Ok(Response::new(CancelResponse::default()))
    }

    async fn put_blob(
        &self,
        _: Request<tonic::Streaming<PutBlobRequest>>,
    ) -> Result<Response<PutBlobResponse>, Status> {
        Err(Status::unimplemented("there is no code"))
    }

    async fn close_session(
        &self,
        _: Request<CloseSessionRequest>,
    ) -> Result<Response<CloseSessionResponse>, Status> {
        Ok(Response::new(CloseSessionResponse {}))
    }
}

/// What all agents share.
struct World {
    store: Arc<dyn Store>,
    hands: Hands,
    oracle: Arc<Oracle>,
    limits: Limits,
}

/// An agent, with a runtime of its own: without it nothing of the agent goes on.
struct Life {
    runtime: Runtime,
    runs: Arc<Runs>,
}

impl World {
    fn live(&self) -> Life {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let hands = wire::transport(ToolExecutorServer::new(self.hands.clone()));
        let executors = {
            let _inside = runtime.enter();
            Discovered::behind("unix:/hands", Arc::new(move |_| Ok(hands.clone()))).unwrap()
        };
        let config = Config { limits: self.limits, ..Config::default() };
        let oracle: Arc<dyn Model> = Arc::clone(&self.oracle) as _;
        let models = Catalogue::load(None, &|_| None, Settings::default(), oracle).unwrap();
        let tools = Tools::new(executors, &config);
        let runs = Arc::new(Runs::new(config, models, tools, Arc::clone(&self.store)));
        Life { runtime, runs }
    }
}

impl Life {
    fn begin(&self) -> LogId {
        let reading = self.runtime.block_on(self.runs.start(question(self.runs.config().limits)));
        LogId::from(reading.ok().unwrap().run())
    }

    fn take_over(&self) {
        self.runtime.block_on(self.runs.recover(&|_| ())).unwrap();
    }

    /// Counts another agent as dead, whatever it does.
    fn buries(&self, other: &Runs) {
        let buried = async { self.runs.log().heartbeat(&other.owner().await?, Duration::ZERO).await };
        self.runtime.block_on(buried).unwrap();
    }

    /// Nothing of it goes on.
    fn dies(self) -> Arc<Runs> {
        self.runtime.shutdown_timeout(ENOUGH);
        self.runs
    }

    /// Waits until the log has so many more events; false if the run has ended before.
    fn reaches(&self, log: &LogId, more: u64) -> bool {
        let store = self.runs.log();
        let reached = async {
            let before = store.entry(log).await.unwrap().position;
            let mut events = Box::pin(store::tail(Arc::clone(&store), &RunId::new(log.as_str()), before));
            while let Some(event) = events.next().await {
                let event = event.unwrap();
                if event.ends_run() {
                    return false;
                }
                if event.position >= before.saturating_add(more) {
                    return true;
                }
            }
            false
        };
        self.runtime.block_on(async { timeout(ENOUGH, reached).await }).unwrap()
    }
}

fn question(limits: Limits) -> Question {
    Question {
        text: "What is wrong?".to_owned(),
        history: Vec::new(),
        model: None,
        images: Vec::new(),
        documents: Vec::new(),
        client_tools: Vec::new(),
        brought: Brought::default(),
        approvals: false,
        waits: false,
        subagents: domain::Subagents::default(),
        standing: Vec::new(),
        headers: RequestHeaders::default(),
        session: String::new(),
        rlm: None,
        exec_directory: String::new(),
        home: String::new(),
        profile: domain::ToolProfile::default(),
        permissions: None,
        cluster: String::new(),
        labels: domain::Labels::default(),
        clusters: Vec::new(),
        form: None,
        sections: crate::prompt::Sections::choose(None, &HashMap::new()),
        files: Vec::new(),
        alert_history: None,
        additional_system_prompt: String::new(),
        limits,
        account: "a".to_owned(),
        principal: String::new(),
        idempotency: None,
        keeper: "a test".to_owned(),
        effort: None,
    }
}

/// What can be told of a run that has ended. Of a change whose agent died over it, nobody may know whether it began.
fn told(life: &Life, log: &LogId) -> (Option<Outcome>, Vec<(Role, String)>) {
    let store = life.runs.log();
    let events = life.runtime.block_on(store.read(log, 0, NonZeroUsize::new(100_000).unwrap())).unwrap();
    let positions: Vec<_> = events.iter().map(|event| event.position).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>(), "dense");
    let family = Family::fold(life.runs.config().limits, events.iter().map(AsRef::as_ref));
    // The question tells the time.
    let said = family.main().messages().iter().skip(1).map(|message| {
        let text = match &message.answers {
            Some((_, tool)) if tool == CHANGE => "changed, or not".to_owned(),
            _ => message.joined_text(),
        };
        (message.role, text)
    });
    (family.main().outcome(), said.collect())
}

fn world(dice: &[u8]) -> World {
    let limits = Limits { steps: 12, parallel_tools: 2, ..Limits::default() };
    World { store: Arc::new(Memory::default()), hands: Hands::default(), oracle: Oracle::new(dice), limits }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_run_whose_agents_die_ends_as_it_would_have(
        dice in prop::collection::vec(any::<u8>(), 1..6), deaths in prop::collection::vec((1..12_u64, any::<bool>()), 1..4),
    ) {
        let quiet = world(&dice);
        let life = quiet.live();
        let log = life.begin();
        life.reaches(&log, u64::MAX);
        let undisturbed = told(&life, &log);
        prop_assert_eq!(undisturbed.0, Some(Outcome::Finished));

        let cruel = world(&dice);
        let (mut life, mut undead) = (cruel.live(), Vec::new());
        let log = life.begin();
        for (events, is_dead) in deaths {
            if !life.reaches(&log, events) {
                break;
            }
            let next = cruel.live();
            let before = std::mem::replace(&mut life, next);
            if is_dead {
                life.buries(&before.dies());
            } else {
                life.buries(&before.runs);
                undead.push(before);
            }
            life.take_over();
        }
        life.reaches(&log, u64::MAX);
        prop_assert_eq!(told(&life, &log), undisturbed);
        let begun = cruel.hands.begun();
        let once = begun.values().all(|(tool, times)| tool == LOOK || *times == 1);
        prop_assert!(once, "no change is made twice: {:?}", begun);
    }
}
