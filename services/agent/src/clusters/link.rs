//! `sleuth.cluster.v1`: an executor opens a stream, and the agent is the client of a connection inside of it.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use domain::ToolProfile;
use futures_util::{Stream, StreamExt as _, future::ready, stream};
use hyper_util::rt::TokioIo;
use runtime::{auth, tunnel::Tunnel};
use tokio::{
    sync::{mpsc, oneshot},
    time::{interval, sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Request, Response, Status, Streaming, async_trait,
    transport::{Channel, Endpoint, Uri},
};
use tower::service_fn;
use wire::{
    cluster::{
        GoAway, Hello, JoinRequest, JoinResponse, LinkRequest, LinkResponse, RenewRequest, RenewResponse,
        Welcome,
        cluster_link_server::{ClusterLink, ClusterLinkServer},
        link_request, link_response,
    },
    executor::ListToolsRequest,
    transport,
};

use super::{Admission, Clusters, Joined};
use crate::tools::executors::Member;

/// How long an executor may take to say who it is, and then to answer inside.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// How long its successor may take to come, when a link is to be replaced.
const SUCCESSION: Duration = Duration::from_secs(30);
/// How often it is looked whether the key of a link still counts.
const CHECK: Duration = Duration::from_secs(30);
/// Messages on their way to an executor.
const BACKLOG: usize = 16;
/// What one call may have on its way, and all calls of an executor together.
const CALL_WINDOW: u32 = 256 << 10;
const LINK_WINDOW: u32 = 16 << 20;
/// How often the other end is asked whether it lives, and how long it may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(5);

type Incoming = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Where executors of clusters come in.
pub struct Link {
    clusters: Clusters,
    admission: Arc<dyn Admission>,
    age: Duration,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("clusters", &self.clusters).finish_non_exhaustive()
    }
}

impl Link {
    /// The gRPC service, which lets in whom `admission` knows, and has links replaced that have this age.
    pub fn service(
        clusters: Clusters,
        admission: Arc<dyn Admission>,
        age: Duration,
    ) -> ClusterLinkServer<Self> {
        ClusterLinkServer::new(Self { clusters, admission, age })
    }
}

#[async_trait]
impl ClusterLink for Link {
    type LinkStream = Pin<Box<dyn Stream<Item = Result<LinkResponse, Status>> + Send>>;

    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<JoinResponse>, Status> {
        let (joined, key) = self.admission.join(&request.into_inner().token).await?;
        tracing::info!(account = joined.account, cluster = joined.cluster, "a cluster has joined");
        Ok(Response::new(JoinResponse { key, cluster: joined.cluster }))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        let key = self.admission.renew(&key(&request)?).await?;
        Ok(Response::new(RenewResponse { key }))
    }

    async fn link(
        &self,
        request: Request<Streaming<LinkRequest>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        if self.clusters.closing().is_cancelled() {
            return Err(Status::unavailable("this agent is shutting down"));
        }
        if self.clusters.leaving().is_cancelled() {
            return Err(Status::unavailable("this agent takes no more executors: it is shutting down"));
        }
        let key = key(&request)?;
        let joined = self.admission.admit(&key).await?;
        let mut from = request.into_inner();
        let hello = hello(&mut from).await?;
        if !hello.cluster.is_empty() && hello.cluster != joined.cluster {
            return Err(Status::permission_denied(format!(
                "the key is that of cluster `{}`",
                joined.cluster
            )));
        }
        if joined.cluster == self.clusters.own() {
            return Err(Status::already_exists(format!(
                "this agent's own cluster is called `{}`: join with another name",
                joined.cluster
            )));
        }
        let (to, out) = mpsc::channel(BACKLOG);
        let (say, said) = oneshot::channel();
        let welcome = link_response::Kind::Welcome(Welcome { cluster: joined.cluster.clone() });
        let held = Held {
            clusters: self.clusters.clone(),
            admission: Arc::clone(&self.admission),
            age: jittered(self.age),
            key,
            joined,
            executor: hello.executor,
        };
        tokio::spawn(held.hold(Tunnel::new(incoming(from), to), say));
        let data = ReceiverStream::new(out).map(link_response::Kind::Data);
        let said = stream::once(said).filter_map(|said| ready(said.ok().map(link_response::Kind::GoAway)));
        let kinds = stream::once(ready(welcome)).chain(stream::select(data, said));
        Ok(Response::new(Box::pin(kinds.map(|kind| Ok(LinkResponse { kind: Some(kind) })))))
    }
}

/// A link of an executor.
struct Held {
    clusters: Clusters,
    admission: Arc<dyn Admission>,
    age: Duration,
    key: String,
    joined: Joined,
    executor: String,
}

impl Held {
    /// Has an executor take calls for as long as its link lives.
    async fn hold(self, tunnel: Tunnel<Incoming>, say: oneshot::Sender<GoAway>) {
        let ended = tunnel.ended();
        let Joined { account, cluster } = &self.joined;
        let executor = self.executor.as_str();
        let member = Member::dialled_in(executor.to_owned(), transport(channel(tunnel)));
        let mut client = member.client();
        match timeout(HELLO_TIME, client.list_tools(ListToolsRequest::default())).await {
            Ok(Ok(list)) => member.told(ToolProfile::default(), list.into_inner()),
            failed => {
                tracing::warn!(
                    account,
                    cluster,
                    executor,
                    ?failed,
                    "an executor dialled in and does not answer"
                );
                return;
            }
        }
        drop(client);
        self.clusters.add(&self.joined, &member);
        tracing::info!(account, cluster, executor, "an executor of a cluster is connected");
        let goes_on = tokio::select! {
            () = ended.cancelled() => false,
            () = self.clusters.closing().cancelled() => false,
            () = self.revoked() => false,
            () = self.clusters.leaving().cancelled() => true,
            () = sleep(self.age) => true,
        };
        if goes_on {
            member.leave();
            // An executor that has left needs no word.
            let _ = say.send(GoAway { reason: "the link is to be replaced".to_owned() });
            tokio::select! {
                () = ended.cancelled() => {}
                () = self.clusters.closing().cancelled() => {}
                () = self.clusters.replaced(&self.joined, &member) => {}
                () = self.outlived() => {}
            }
        }
        // Calls that go on hold the way open until they have ended.
        self.clusters.remove(&self.joined, &member);
        tracing::info!(account, cluster, executor, "an executor of a cluster has left");
    }

    /// Waits until the key does not count any more.
    async fn revoked(&self) {
        let mut ticks = interval(CHECK);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let admitted = timeout(CHECK, self.admission.admit(&self.key)).await;
            if matches!(admitted, Ok(Err(status)) if status.code() == Code::Unauthenticated) {
                tracing::warn!(cluster = self.joined.cluster, "the key of a cluster does not count any more");
                return;
            }
        }
    }

    /// Waits for as long as a successor may take. An agent that is to end keeps its links until it does.
    async fn outlived(&self) {
        match self.clusters.leaving().is_cancelled() {
            true => std::future::pending().await,
            false => sleep(SUCCESSION).await,
        }
    }
}

/// An age that is not the same for all links, so that not all are replaced at once.
fn jittered(age: Duration) -> Duration {
    age.mul_f64(0.75 + fastrand::f64() / 4.0)
}

/// A channel over one connection, which is not made again: the executor comes again with another one.
fn channel(tunnel: Tunnel<Incoming>) -> Channel {
    let tunnel = Arc::new(Mutex::new(Some(TokioIo::new(tunnel))));
    let once = service_fn(move |_: Uri| {
        let taken = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
        ready(
            taken.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "the executor's link has ended")),
        )
    });
    Endpoint::from_static("http://executor")
        .initial_stream_window_size(CALL_WINDOW)
        .initial_connection_window_size(LINK_WINDOW)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIME)
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(once)
}

async fn hello(from: &mut Streaming<LinkRequest>) -> Result<Hello, Status> {
    let late = |_| Status::deadline_exceeded("no hello in time");
    let first = timeout(HELLO_TIME, from.message()).await.map_err(late)??;
    match first.and_then(|first| first.kind) {
        Some(link_request::Kind::Hello(hello)) if !hello.executor.is_empty() => Ok(hello),
        Some(_) | None => Err(Status::invalid_argument("an executor says first who it is")),
    }
}

/// The bytes that come after the hello.
fn incoming(from: Streaming<LinkRequest>) -> Incoming {
    Box::pin(from.map(|message| match message.map_err(io::Error::other)?.kind {
        Some(link_request::Kind::Data(data)) => Ok(data),
        Some(link_request::Kind::Hello(_)) | None => Err(io::ErrorKind::InvalidData.into()),
    }))
}

fn key<T>(request: &Request<T>) -> Result<String, Status> {
    let presented = auth::presented(request.metadata().as_ref()).next().map(str::to_owned);
    presented.ok_or_else(|| Status::unauthenticated("a cluster presents its key"))
}
