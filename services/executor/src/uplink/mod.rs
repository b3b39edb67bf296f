//! The way out of a cluster that cannot be dialled: this executor opens a stream to an agent, and serves inside of it.

mod membership;

use std::{io, path::Path, pin::Pin, time::Duration};

use bytes::Bytes;
use futures_util::{
    Stream, StreamExt as _,
    future::join_all,
    stream::{self, FuturesUnordered},
};
use runtime::tunnel::Tunnel;
use secrecy::SecretString;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming, transport::Server};
use wire::{
    Transport,
    cluster::{
        Hello, LinkRequest, LinkResponse, cluster_link_client::ClusterLinkClient, link_request, link_response,
    },
};

use crate::Executor;
use membership::{Membership, bearing, is_refusal};

pub use membership::UplinkError;

/// How long an agent may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// A pause after a link that ended: doubled after each short life, up to the longest.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Links that are to be replaced and still have something to do.
const MOST_OLDER: usize = 8;
/// A life that is not short.
const LONG_LIFE: Duration = Duration::from_secs(30);
/// Messages on their way to the agent.
const BACKLOG: usize = 16;
/// What one call may have on its way, all calls together, and how many there may be.
const CALL_WINDOW: u32 = 256 << 10;
const LINK_WINDOW: u32 = 32 << 20;
const CALLS: u32 = 128;
/// How often the agent is asked whether it lives, and how long it may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(5);
/// How long a link may take to end.
const END_TIME: Duration = Duration::from_secs(20);

type Agent = ClusterLinkClient<Transport>;

/// How to reach agents, and as whom.
#[derive(Debug)]
pub struct Uplink {
    agents: Vec<Agent>,
    executor: String,
    membership: Membership,
}

impl Uplink {
    /// The way to each of some agents, for an executor of this name. The cluster's key is kept in `folder`; without one,
    /// and where it counts no more, the token is exchanged for another. `cluster` is checked against them, unless it is
    /// empty.
    ///
    /// # Errors
    /// If there is neither a key nor a token that counts, or the key cannot be kept.
    pub async fn open(
        agents: Vec<Transport>,
        cluster: String,
        executor: String,
        folder: &Path,
        token: Option<SecretString>,
    ) -> Result<Self, UplinkError> {
        let agents: Vec<_> = agents.into_iter().map(ClusterLinkClient::new).collect();
        let membership = Membership::open(agents.clone(), cluster, folder, token).await?;
        Ok(Self { agents, executor, membership })
    }

    /// Serves an executor at each agent until `shutdown`; a link that ends is made again.
    pub async fn serve(&self, executor: &Executor, shutdown: &CancellationToken) {
        let links = join_all(self.agents.iter().map(|agent| self.stay(agent, executor, shutdown)));
        tokio::select! {
            _ = links => {}
            never = self.membership.renew() => match never {},
        }
    }

    /// Keeps a link to an agent. One that is to be replaced goes on until the agent ends it, so that nothing of it is
    /// cut.
    async fn stay(&self, agent: &Agent, executor: &Executor, shutdown: &CancellationToken) {
        let (mut pause, mut older) = (PAUSE, FuturesUnordered::new());
        while !shutdown.is_cancelled() {
            let (began, goes) = (Instant::now(), CancellationToken::new());
            let mut link = Box::pin(self.link(agent.clone(), executor, shutdown, goes.clone()));
            let linked = loop {
                tokio::select! {
                    linked = &mut link => break Some(linked),
                    () = goes.cancelled(), if older.len() < MOST_OLDER => break None,
                    Some(_) = older.next() => {}
                    () = hurried(shutdown) => return,
                }
            };
            if shutdown.is_cancelled() {
                continue;
            }
            match linked {
                None => {
                    tracing::info!("the link to an agent is replaced");
                    older.push(link);
                    // Not all that are told at once come at once.
                    tokio::select! {
                        () = shutdown.cancelled() => {}
                        () = sleep(PAUSE.mul_f64(fastrand::f64())) => {}
                    }
                    continue;
                }
                Some(Ok(())) => tracing::warn!("the link to an agent has ended and is made again"),
                Some(Err(status)) => tracing::warn!(error = status.message(), "there is no link to an agent"),
            }
            pause = if began.elapsed() > LONG_LIFE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            let again = sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0));
            tokio::pin!(again);
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = &mut again => break,
                    Some(_) = older.next() => {}
                }
            }
        }
        tokio::select! {
            () = async { while older.next().await.is_some() {} } => {}
            () = hurried(shutdown) => {}
        }
    }

    /// One link, from the hello to its end; with another key for the next one, if this one's is refused.
    async fn link(
        &self,
        agent: Agent,
        executor: &Executor,
        shutdown: &CancellationToken,
        goes: CancellationToken,
    ) -> Result<(), Status> {
        let key = self.membership.key();
        let linked = self.link_as(&key, agent, executor, shutdown, goes).await;
        if linked.as_ref().is_err_and(is_refusal) {
            self.membership.replace(&key).await;
        }
        linked
    }

    async fn link_as(
        &self,
        key: &SecretString,
        mut agent: Agent,
        executor: &Executor,
        shutdown: &CancellationToken,
        goes: CancellationToken,
    ) -> Result<(), Status> {
        let (to, out) = mpsc::channel(BACKLOG);
        let hello = link_request::Kind::Hello(Hello {
            cluster: self.membership.cluster.clone(),
            executor: self.executor.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        let data = ReceiverStream::new(out).map(link_request::Kind::Data);
        let kinds = stream::iter([hello]).chain(data);
        let messages = kinds.map(|kind| LinkRequest { kind: Some(kind) });
        let mut from = answered(agent.link(bearing(key, messages)?)).await?.into_inner();
        let welcome = answered(from.message()).await?;
        let Some(LinkResponse { kind: Some(link_response::Kind::Welcome(welcome)) }) = welcome else {
            return Err(Status::internal("the agent does not say who it takes this executor for"));
        };
        tracing::info!(cluster = welcome.cluster, executor = self.executor, "linked to the agent");
        let tunnel = Tunnel::new(incoming(from, goes), to);
        let ended = tunnel.ended();
        // A server whose connections could end of themselves would end at once.
        let connections = stream::iter([Ok::<_, io::Error>(tunnel)]).chain(stream::pending());
        let serving = Server::builder()
            .initial_stream_window_size(CALL_WINDOW)
            .initial_connection_window_size(LINK_WINDOW)
            .max_concurrent_streams(CALLS)
            .http2_keepalive_interval(Some(KEEP_ALIVE))
            .http2_keepalive_timeout(Some(KEEP_ALIVE_TIME))
            .add_service(executor.service())
            .serve_with_incoming_shutdown(connections, shutdown.cancelled());
        tokio::select! {
            served = serving => served.map_err(|error| Status::unavailable(error.to_string())),
            () = ended.cancelled() => Ok(()),
        }
    }
}

type Incoming = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The bytes that come; `goes` is cancelled when the agent asks for another link.
fn incoming(from: Streaming<LinkResponse>, goes: CancellationToken) -> Incoming {
    Box::pin(from.filter_map(move |message| {
        let kind = message.map_err(io::Error::other).map(|message| message.kind);
        std::future::ready(match kind {
            Ok(Some(link_response::Kind::Data(data))) => Some(Ok(data)),
            Ok(Some(link_response::Kind::GoAway(_))) => {
                goes.cancel();
                None
            }
            Ok(Some(link_response::Kind::Welcome(_)) | None) => Some(Err(io::ErrorKind::InvalidData.into())),
            Err(error) => Some(Err(error)),
        })
    }))
}

/// Ends some time after the shutdown: whoever holds a link open then is not waited for.
async fn hurried(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    sleep(END_TIME).await;
}

async fn answered<T>(answer: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_| Status::deadline_exceeded("the agent does not answer");
    timeout(ANSWER_TIME, answer).await.map_err(late)?
}
