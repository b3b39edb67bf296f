//! What becomes of a call when its agent, or the way to its executor, is lost after the log says where it goes and before
//! it gets there.

use harness::{client::Stream, link::Link};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Channel, Server},
};
use wire::executor::{
    self as api, ExecuteEvent,
    tool_executor_client::ToolExecutorClient,
    tool_executor_server::{ToolExecutor, ToolExecutorServer},
};

use crate::{
    approvals::{decision, held},
    fleet::{Fleet, SOON, bash, dial, places, question},
};

/// Passes everything on to an executor; the first call that is to be run gets lost.
#[derive(Debug)]
struct Between {
    to: ToolExecutorClient<Channel>,
    /// How many calls came that were to be run.
    came: watch::Sender<usize>,
}

#[tonic::async_trait]
impl ToolExecutor for Between {
    type ExecuteStream = Streaming<ExecuteEvent>;
    type AttachStream = Streaming<ExecuteEvent>;

    async fn list_tools(
        &self,
        request: Request<api::ListToolsRequest>,
    ) -> Result<Response<api::ListToolsResponse>, Status> {
        self.to.clone().list_tools(request).await
    }

    async fn plan(&self, request: Request<api::PlanRequest>) -> Result<Response<api::PlanResponse>, Status> {
        self.to.clone().plan(request).await
    }

    async fn execute(
        &self,
        request: Request<api::ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        self.came.send_modify(|came| *came += 1);
        if *self.came.borrow() == 1 {
            std::future::pending::<()>().await;
        }
        self.to.clone().execute(request).await
    }

    async fn attach(
        &self,
        request: Request<api::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        self.to.clone().attach(request).await
    }

    async fn answer_host_call(
        &self,
        request: Request<api::AnswerHostCallRequest>,
    ) -> Result<Response<api::AnswerHostCallResponse>, Status> {
        self.to.clone().answer_host_call(request).await
    }

    async fn cancel(
        &self,
        request: Request<api::CancelRequest>,
    ) -> Result<Response<api::CancelResponse>, Status> {
        self.to.clone().cancel(request).await
    }

    async fn put_blob(
        &self,
        _request: Request<Streaming<api::PutBlobRequest>>,
    ) -> Result<Response<api::PutBlobResponse>, Status> {
        Err(Status::unimplemented("no test sends one"))
    }

    async fn close_session(
        &self,
        request: Request<api::CloseSessionRequest>,
    ) -> Result<Response<api::CloseSessionResponse>, Status> {
        self.to.clone().close_session(request).await
    }
}

/// The way to the executor of a fleet.
struct Way {
    link: Link,
    came: watch::Receiver<usize>,
    _serving: AbortOnDropHandle<()>,
}

async fn fleet() -> (Fleet, Way) {
    let way = async |executor: &harness::process::Sleuth| {
        let came = watch::Sender::new(0);
        let between = Between { to: dial(executor).await, came: came.clone() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = Link::to([listener.local_addr().unwrap()]).await.unwrap();
        let server = Server::builder().add_service(ToolExecutorServer::new(between));
        let serving = async { server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap() };
        let serving = AbortOnDropHandle::new(tokio::spawn(serving));
        (link.url(""), Way { link, came: came.subscribe(), _serving: serving })
    };
    Box::pin(Fleet::through(way)).await
}

/// Begins something, and waits until the executor is asked to do it, which the log says by then.
async fn begin(fleet: &Fleet, way: &mut Way, body: &Value) -> (String, Stream) {
    let mut body = body.clone();
    body["stream"] = true.into();
    let stream = Stream::open(&fleet.chat(), &body).await.unwrap();
    let came = way.came.wait_for(|came| *came > 0);
    tokio::time::timeout(SOON, came).await.expect("the call is on its way").unwrap();
    (stream.run_id().unwrap(), stream)
}

/// What a run says in the end of its only call, and how often it was given away.
async fn end(fleet: &Fleet, run: &str) -> (String, usize) {
    let events = fleet.events(run).await;
    let results: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            Some(wire::agent::event::Kind::ToolFinished(finished)) => Some(format!("{finished:?}")),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), 1, "{events:?}");
    (results[0].clone(), places(&events).len())
}

#[derive(Clone, Copy, Debug)]
enum Loss {
    OfTheAgent,
    OfTheWay,
}

async fn lose(fleet: Fleet, way: &Way, loss: Loss) -> Fleet {
    match loss {
        Loss::OfTheAgent => fleet.another_agent().await,
        Loss::OfTheWay => {
            way.link.cut();
            fleet
        }
    }
}

#[tokio::test]
async fn a_change_that_never_arrived_is_in_doubt_and_does_not_begin() {
    for loss in [Loss::OfTheAgent, Loss::OfTheWay] {
        let (fleet, mut way) = fleet().await;
        let held = held(&fleet, &format!("echo ran >> {}", fleet.path("mark").display())).await;
        let (run, _reader) = begin(&fleet, &mut way, &decision(&held, json!({ "approved": true }))).await;
        let fleet = lose(fleet, &way, loss).await;
        let (result, placed) = end(&fleet, &run).await;
        assert!(result.contains("nobody knows whether it did"), "{loss:?}: {result}");
        assert_eq!((fleet.lines("mark"), placed), (0, 1), "{loss:?}");
    }
}

#[tokio::test]
async fn a_read_that_never_arrived_begins_again() {
    for loss in [Loss::OfTheAgent, Loss::OfTheWay] {
        let (fleet, mut way) = fleet().await;
        let (run, _reader) =
            begin(&fleet, &mut way, &json!({ "ask": question(&[vec![bash("echo here")]]) })).await;
        let fleet = lose(fleet, &way, loss).await;
        let (result, placed) = end(&fleet, &run).await;
        assert!(result.contains("here") && !result.contains("nobody knows"), "{loss:?}: {result}");
        assert_eq!((*way.came.borrow(), placed), (2, 2), "{loss:?}");
    }
}
