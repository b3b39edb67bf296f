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
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Response, Status, Streaming, async_trait,
    transport::{Channel, Endpoint, Uri},
};
use tower::service_fn;
use wire::{
    cluster::{
        Hello, JoinRequest, JoinResponse, LinkRequest, LinkResponse, RenewRequest, RenewResponse, Welcome,
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
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("clusters", &self.clusters).finish_non_exhaustive()
    }
}

impl Link {
    /// The gRPC service, which lets in whom `admission` knows.
    pub fn service(clusters: Clusters, admission: Arc<dyn Admission>) -> ClusterLinkServer<Self> {
        ClusterLinkServer::new(Self { clusters, admission })
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
        let joined = self.admission.admit(&key(&request)?).await?;
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
        let welcome = link_response::Kind::Welcome(Welcome { cluster: joined.cluster.clone() });
        tokio::spawn(hold(self.clusters.clone(), joined, hello.executor, Tunnel::new(incoming(from), to)));
        let data = ReceiverStream::new(out).map(link_response::Kind::Data);
        let kinds = stream::once(ready(welcome)).chain(data);
        Ok(Response::new(Box::pin(kinds.map(|kind| Ok(LinkResponse { kind: Some(kind) })))))
    }
}

/// Has an executor take calls for as long as its link lives.
async fn hold(clusters: Clusters, joined: Joined, name: String, tunnel: Tunnel<Incoming>) {
    let ended = tunnel.ended();
    let Joined { account, cluster } = &joined;
    let member = Member::dialled_in(name.clone(), transport(channel(tunnel)));
    let mut client = member.client();
    match timeout(HELLO_TIME, client.list_tools(ListToolsRequest::default())).await {
        Ok(Ok(list)) => member.told(ToolProfile::default(), list.into_inner()),
        failed => {
            tracing::warn!(
                account,
                cluster,
                executor = name,
                ?failed,
                "an executor dialled in and does not answer"
            );
            return;
        }
    }
    drop(client);
    clusters.add(&joined, &member);
    tracing::info!(account, cluster, executor = name, "an executor of a cluster is connected");
    tokio::select! {
        () = ended.cancelled() => {}
        () = clusters.closing().cancelled() => {}
    }
    clusters.remove(&joined, &member);
    tracing::info!(account, cluster, executor = name, "an executor of a cluster has left");
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
