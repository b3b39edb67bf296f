//! An agent that plays what a test wrote, over a real socket.

use std::{
    pin::Pin,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use domain::{AgentId, Event, EventKind, RunId, Timestamp};
use futures_util::Stream;
use tokio::{
    net::TcpListener,
    sync::{Barrier, Notify, mpsc},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, metadata::MetadataMap};
use wire::agent::{
    self, CancelRunRequest, CancelRunResponse, ChatRequest, ClusterInfo, DecideOutcome, DecideRequest,
    DecideResponse, GetReadinessRequest, GetReadinessResponse, GetRunRequest, GetRunResponse,
    ListClustersRequest, ListClustersResponse, ListModelsRequest, ListModelsResponse, ListRunsRequest,
    ListRunsResponse, ListToolsRequest, ListToolsResponse, ModelInfo, RunInfo, RunState, SteerRequest,
    SteerResponse, Totals, WatchRequest,
    agent_server::{Agent, AgentServer},
};

/// What the agent does with a question.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends these events and ends.
    Play(Vec<EventKind>),
    /// The same for a run with more than one agent.
    Tell(Vec<Told>),
    /// Sends these events and then nothing, until the reader leaves.
    Hang(Vec<EventKind>),
    /// Sends this event as often as it can, this many times at most.
    Flood(Box<EventKind>, usize),
    /// Refuses.
    Refuse(Status),
    /// Refuses, once the test has come here twice as well: when the question is there, and when it may be answered.
    Think(Arc<Barrier>),
}

/// An event of one of several agents.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) agent: AgentId,
    pub(crate) parent: Option<AgentId>,
    pub(crate) kind: EventKind,
}

/// The agent and what it saw.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) act: Arc<Act>,
    pub(crate) missing: Vec<String>,
    /// Whether the run `run-1` goes on.
    pub(crate) goes_on: bool,
    pub(crate) asked: Arc<Mutex<Vec<(ChatRequest, MetadataMap)>>>,
    pub(crate) decided: Arc<Mutex<Vec<DecideRequest>>>,
    pub(crate) cancelled: Arc<Mutex<Vec<CancelRunRequest>>>,
    pub(crate) sent: Arc<AtomicUsize>,
    /// Notified when a reader left before the end.
    pub(crate) left: Arc<Notify>,
}

impl Stage {
    pub(crate) fn new(act: Act) -> Self {
        Self {
            act: Arc::new(act),
            missing: Vec::new(),
            goes_on: false,
            asked: Arc::default(),
            decided: Arc::default(),
            cancelled: Arc::default(),
            sent: Arc::default(),
            left: Arc::default(),
        }
    }

    /// Serves on a free port until the test's runtime ends, and gives the way to it.
    pub(crate) async fn open(&self) -> wire::Transport {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = AgentServer::new(self.clone()).max_decoding_message_size(64 << 20);
        let serving = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
        let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
        wire::transport(channel.connect_lazy())
    }

    /// The only question so far.
    pub(crate) fn question(&self) -> ChatRequest {
        let asked = self.asked.lock().unwrap();
        assert_eq!(asked.len(), 1);
        asked[0].0.clone()
    }
}

/// The log that these events make.
pub(crate) fn log(kinds: Vec<EventKind>) -> Vec<Event> {
    // A log says the same each time it is read.
    static TIME: LazyLock<i64> = LazyLock::new(runtime::clock::unix_nanos);
    let event = |(kind, position)| Event {
        run: RunId::new("run-1"),
        position,
        time: Timestamp(*TIME),
        agent: AgentId::main(),
        parent: None,
        kind,
    };
    kinds.into_iter().zip(1..).map(event).collect()
}

fn log_of_all(told: Vec<Told>) -> Vec<Event> {
    let kinds = told.iter().map(|told| told.kind.clone()).collect();
    let with = |(event, Told { agent, parent, .. })| Event { agent, parent, ..event };
    log(kinds).into_iter().zip(told).map(with).collect()
}

async fn perform(act: Arc<Act>, stage: Stage, stream: mpsc::Sender<Result<agent::Event, Status>>) {
    let (events, hangs) = match &*act {
        Act::Play(kinds) => (log(kinds.clone()), false),
        Act::Tell(told) => (log_of_all(told.clone()), false),
        Act::Hang(kinds) => (log(kinds.clone()), true),
        Act::Flood(kind, times) => (log(vec![(**kind).clone(); *times]), true),
        Act::Refuse(_) | Act::Think(_) => unreachable!("refused before"),
    };
    for event in events {
        if stream.send(Ok(event.into())).await.is_err() {
            stage.left.notify_one();
            return;
        }
        stage.sent.fetch_add(1, Ordering::SeqCst);
    }
    if hangs {
        stream.closed().await;
        stage.left.notify_one();
    }
}

type Events = Pin<Box<dyn Stream<Item = Result<agent::Event, Status>> + Send>>;

#[tonic::async_trait]
impl Agent for Stage {
    type ChatStream = Events;
    type WatchStream = Events;

    async fn chat(&self, request: Request<ChatRequest>) -> Result<Response<Events>, Status> {
        let (metadata, _, question) = request.into_parts();
        self.asked.lock().unwrap().push((question, metadata));
        if let Act::Refuse(status) = &*self.act {
            return Err(status.clone());
        }
        if let Act::Think(meeting) = &*self.act {
            meeting.wait().await;
            meeting.wait().await;
            return Err(Status::invalid_argument("thought"));
        }
        let (sender, events) = mpsc::channel(1);
        tokio::spawn(perform(Arc::clone(&self.act), self.clone(), sender));
        let mut response = Response::new(Box::pin(ReceiverStream::new(events)) as Events);
        response.metadata_mut().insert(wire::RUN_ID, "run-1".parse().unwrap());
        Ok(response)
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Events>, Status> {
        let asked = request.into_inner();
        if asked.run_id != "run-1" {
            return Err(Status::not_found(format!("there is no run {}", asked.run_id)));
        }
        assert_eq!(asked.after_position, 0, "a projection needs the whole log");
        let (sender, events) = mpsc::channel(1);
        tokio::spawn(perform(Arc::clone(&self.act), self.clone(), sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(events))))
    }

    async fn list_models(
        &self,
        _: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        let model =
            |name: &str, is_default| ModelInfo { name: name.to_owned(), is_default, ..ModelInfo::default() };
        let models = vec![model("first", false), model("second", true)];
        Ok(Response::new(ListModelsResponse { models }))
    }

    async fn list_tools(&self, _: Request<ListToolsRequest>) -> Result<Response<ListToolsResponse>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn list_runs(
        &self,
        request: Request<ListRunsRequest>,
    ) -> Result<Response<ListRunsResponse>, Status> {
        let runs = (0..request.into_inner().limit).map(|number| run(format!("run-{number}"))).collect();
        Ok(Response::new(ListRunsResponse { runs }))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        match request.into_inner().run_id {
            id if id == "run-1" => {
                let state = if self.goes_on { RunState::Running } else { RunState::Finished };
                let run = RunInfo { state: state.into(), ..run(id) };
                Ok(Response::new(GetRunResponse { run: Some(run) }))
            }
            id => Err(Status::not_found(format!("no run {id}"))),
        }
    }

    async fn cancel_run(
        &self,
        request: Request<CancelRunRequest>,
    ) -> Result<Response<CancelRunResponse>, Status> {
        self.cancelled.lock().unwrap().push(request.into_inner());
        Ok(Response::new(CancelRunResponse { state_before: RunState::Running.into() }))
    }

    async fn steer(&self, _: Request<SteerRequest>) -> Result<Response<SteerResponse>, Status> {
        Ok(Response::new(SteerResponse {}))
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        let (word, mut decided) = (request.into_inner(), self.decided.lock().unwrap());
        if word.call_id == "ended" {
            return Err(Status::failed_precondition("the call ended does not wait any more"));
        }
        let first = decided.iter().all(|earlier| earlier.call_id != word.call_id);
        decided.push(word);
        let outcome = if first { DecideOutcome::Counts } else { DecideOutcome::Late };
        Ok(Response::new(DecideResponse { outcome: outcome.into() }))
    }

    async fn name_cluster(
        &self,
        _: Request<wire::agent::NameClusterRequest>,
    ) -> Result<Response<wire::agent::NameClusterResponse>, Status> {
        Err(Status::unimplemented("no model is asked"))
    }

    async fn list_clusters(
        &self,
        _: Request<ListClustersRequest>,
    ) -> Result<Response<ListClustersResponse>, Status> {
        let clusters = vec![ClusterInfo { name: "prod".to_owned(), ..ClusterInfo::default() }];
        Ok(Response::new(ListClustersResponse { clusters }))
    }

    async fn get_readiness(
        &self,
        _: Request<GetReadinessRequest>,
    ) -> Result<Response<GetReadinessResponse>, Status> {
        let ready = self.missing.is_empty();
        let models = vec!["first".to_owned(), "second".to_owned()];
        Ok(Response::new(GetReadinessResponse { ready, missing: self.missing.clone(), models }))
    }
}

fn run(run_id: String) -> RunInfo {
    RunInfo {
        run_id,
        state: RunState::Finished.into(),
        question: "why?".to_owned(),
        model: "first".to_owned(),
        started_at: Some(wire::time(Timestamp(1_500_000_000))),
        ended_at: None,
        last_position: 9,
        steps: 2,
        tool_calls: 1,
        totals: Some(Totals { prompt_tokens: 10, completion_tokens: 5, ..Totals::default() }),
        readers: 0,
    }
}
