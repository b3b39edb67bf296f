//! The way out of a cluster that cannot be dialled: this executor opens a stream to an agent, and serves inside of it.

use std::{
    convert::Infallible,
    fs, io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    Stream, StreamExt as _,
    future::join_all,
    stream::{self, FuturesUnordered},
};
use runtime::tunnel::Tunnel;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status, Streaming, metadata::MetadataValue, transport::Server};
use wire::{
    Transport,
    cluster::{
        Hello, JoinRequest, LinkRequest, LinkResponse, RenewRequest, cluster_link_client::ClusterLinkClient,
        link_request, link_response,
    },
};

use crate::Executor;

/// How long an agent may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// A pause after a link that ended: doubled after each short life, up to the longest.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Links that are to be replaced and still have something to do.
const MOST_OLDER: usize = 8;
/// A life that is not short.
const LONG_LIFE: Duration = Duration::from_secs(30);
/// How often the key is exchanged for a fresh one.
const RENEWAL: Duration = Duration::from_secs(24 * 3600);
/// How often it is looked for one that another executor of the cluster put into the folder that they share: well before
/// the old one ends.
const LOOK: Duration = Duration::from_secs(600);
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
const KEY_FILE: &str = "cluster.key";

/// How to reach agents, and as whom.
#[derive(Debug)]
pub struct Uplink {
    agents: Vec<ClusterLinkClient<Transport>>,
    cluster: String,
    executor: String,
    key: Mutex<Key>,
}

/// Why an executor cannot dial out.
#[derive(Debug, thiserror::Error)]
pub enum UplinkError {
    /// It has never joined.
    #[error("there is neither a key in {} nor a token to join with: set --join-token", .0.display())]
    NoKey(PathBuf),
    /// The key cannot be kept.
    #[error("the key of the cluster cannot be kept in {}: {error}", path.display())]
    Keep {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The agent did not take the token.
    #[error("the cluster could not join: {}", .0.message())]
    Join(Status),
}

/// A cluster's key, and the file that it is kept in.
#[derive(Clone, Debug)]
pub struct Key {
    text: SecretString,
    path: PathBuf,
}

impl Key {
    /// The key that is kept in a folder; without one, that for which the agent exchanges a token.
    ///
    /// # Errors
    /// If there is neither, or it cannot be kept.
    pub async fn obtain(
        folder: &Path,
        token: Option<&SecretString>,
        agent: Transport,
    ) -> Result<Self, UplinkError> {
        let path = folder.join(KEY_FILE);
        if let Ok(text) = fs::read_to_string(&path) {
            return Ok(Self { text: text.trim().into(), path });
        }
        let Some(token) = token else { return Err(UplinkError::NoKey(path)) };
        let request = JoinRequest { token: token.expose_secret().to_owned() };
        let mut client = ClusterLinkClient::new(agent);
        let joined = answered(client.join(request)).await.map_err(UplinkError::Join)?.into_inner();
        tracing::info!(cluster = joined.cluster, "joined");
        let key = Self { text: joined.key.into(), path };
        key.keep().map_err(|error| UplinkError::Keep { path: key.path.clone(), error })?;
        Ok(key)
    }

    /// What is in its file now; itself if that cannot be read.
    fn kept(self) -> Self {
        let kept = fs::read_to_string(&self.path).ok().map(|text| text.trim().to_owned());
        let text = kept.filter(|text| !text.is_empty()).map_or(self.text, SecretString::from);
        Self { text, path: self.path }
    }

    /// How long it has been there.
    fn age(&self) -> Option<Duration> {
        fs::metadata(&self.path).ok()?.modified().ok()?.elapsed().ok()
    }

    /// Writes it anew, so that there is always a whole one.
    fn keep(&self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = self.path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        io::Write::write_all(&mut file, self.text.expose_secret().as_bytes())?;
        file.sync_all()?;
        fs::rename(new, &self.path)
    }

    fn bearing<T>(&self, message: T) -> Result<Request<T>, Status> {
        let mut request = Request::new(message);
        let bearer = format!("Bearer {}", self.text.expose_secret());
        let mut value =
            MetadataValue::try_from(bearer).map_err(|_| Status::unauthenticated("the key is no key"))?;
        value.set_sensitive(true);
        request.metadata_mut().insert("authorization", value);
        Ok(request)
    }
}

impl Uplink {
    /// The way to each of some agents, for an executor of this name. `cluster` is checked against the key, unless it is
    /// empty.
    pub fn new(agents: Vec<Transport>, cluster: String, executor: String, key: Key) -> Self {
        let agents = agents.into_iter().map(ClusterLinkClient::new).collect();
        Self { agents, cluster, executor, key: Mutex::new(key) }
    }

    /// Serves an executor at each agent until `shutdown`; a link that ends is made again.
    pub async fn serve(&self, executor: &Executor, shutdown: &CancellationToken) {
        let links = join_all(self.agents.iter().map(|agent| self.stay(agent, executor, shutdown)));
        tokio::select! {
            _ = links => {}
            never = self.renew() => match never {},
        }
    }

    /// Keeps a link to an agent. One that is to be replaced goes on until the agent ends it, so that nothing of it is
    /// cut.
    async fn stay(
        &self,
        agent: &ClusterLinkClient<Transport>,
        executor: &Executor,
        shutdown: &CancellationToken,
    ) {
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

    /// Exchanges the key for a fresh one, again and again; a link that is there stays.
    async fn renew(&self) -> Infallible {
        loop {
            let pause = match self.refresh().await {
                Ok(left) => left.min(LOOK),
                Err(error) => {
                    tracing::warn!(error = error.message(), "the key of the cluster could not be renewed");
                    LONGEST_PAUSE
                }
            };
            sleep(pause).await;
        }
    }

    /// Takes the key that is in the folder now, or exchanges it if it is old. The time for which it will do.
    async fn refresh(&self) -> Result<Duration, Status> {
        let kept = self.key().kept();
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = kept.clone();
        let left = kept.age().map_or(RENEWAL, |age| RENEWAL.saturating_sub(age));
        if left.is_zero() {
            self.exchange(kept).await?;
            return Ok(RENEWAL);
        }
        Ok(left)
    }

    async fn exchange(&self, old: Key) -> Result<(), Status> {
        let mut answer = Err(Status::unavailable("there is no agent"));
        for agent in &self.agents {
            answer = answered(agent.clone().renew(old.bearing(RenewRequest {})?)).await;
            if answer.is_ok() {
                break;
            }
        }
        let fresh = Key { text: answer?.into_inner().key.into(), path: old.path };
        fresh.keep().map_err(|error| Status::internal(error.to_string()))?;
        tracing::info!("the key of the cluster is renewed");
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    fn key(&self) -> Key {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One link, from the hello to its end.
    async fn link(
        &self,
        mut agent: ClusterLinkClient<Transport>,
        executor: &Executor,
        shutdown: &CancellationToken,
        goes: CancellationToken,
    ) -> Result<(), Status> {
        let (to, out) = mpsc::channel(BACKLOG);
        let hello = link_request::Kind::Hello(Hello {
            cluster: self.cluster.clone(),
            executor: self.executor.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        let data = ReceiverStream::new(out).map(link_request::Kind::Data);
        let kinds = stream::iter([hello]).chain(data);
        let messages = kinds.map(|kind| LinkRequest { kind: Some(kind) });
        let mut from = answered(agent.link(self.key().bearing(messages)?)).await?.into_inner();
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
