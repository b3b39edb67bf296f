//! The key of a cluster: kept in a file, exchanged for a fresh one in time, and for a new one where it counts no more.

use std::{
    convert::Infallible,
    fs, io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::sleep;
use tonic::{Code, Request, Response, Status, metadata::MetadataValue};
use wire::cluster::{JoinRequest, RenewRequest};

use super::{Agent, answered};

/// How often the key is exchanged for a fresh one.
const RENEWAL: Duration = Duration::from_secs(24 * 3600);
/// How often it is looked for one that another executor of the cluster put into the folder that they share: well before
/// the old one ends.
const LOOK: Duration = Duration::from_secs(600);
/// A pause after an exchange that failed.
const PAUSE: Duration = Duration::from_secs(60);
const KEY_FILE: &str = "cluster.key";

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
    /// No agent took the token.
    #[error("the cluster could not join: {}", .0.message())]
    Join(Status),
    /// The token is that of another cluster.
    #[error("the token is that of cluster `{joined}`, and --cluster is `{wanted}`")]
    OtherCluster {
        /// Whose it is.
        joined: String,
        /// Whose it should be.
        wanted: String,
    },
}

/// How agents know this cluster.
#[derive(Debug)]
pub(super) struct Membership {
    /// The cluster as its operator calls it; empty if any will do.
    pub(super) cluster: String,
    agents: Vec<Agent>,
    path: PathBuf,
    key: Mutex<SecretString>,
    /// A token that may be good for another key. Whoever looks for one holds it.
    token: tokio::sync::Mutex<Option<SecretString>>,
}

impl Membership {
    /// With the key that is kept in a folder; without one, with that for which an agent exchanges the token.
    pub(super) async fn open(
        agents: Vec<Agent>,
        cluster: String,
        folder: &Path,
        token: Option<SecretString>,
    ) -> Result<Self, UplinkError> {
        let path = folder.join(KEY_FILE);
        let (key, token) = match (read(&path), token) {
            (Some(key), token) => (key, token),
            (None, Some(token)) => (join(&agents, &cluster, &path, &token).await?, None),
            (None, None) => return Err(UplinkError::NoKey(path)),
        };
        Ok(Self { cluster, agents, path, key: Mutex::new(key), token: tokio::sync::Mutex::new(token) })
    }

    /// The key that counts as far as is known.
    pub(super) fn key(&self) -> SecretString {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The key that is in the file now; the known one if that cannot be read.
    fn read_again(&self) -> SecretString {
        let Some(kept) = read(&self.path) else { return self.key() };
        self.takes(kept.clone());
        kept
    }

    fn takes(&self, key: SecretString) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }

    /// Exchanges the key for a fresh one, again and again; a link that is there stays.
    pub(super) async fn renew(&self) -> Infallible {
        loop {
            let pause = match self.refresh().await {
                Ok(left) => left.min(LOOK),
                Err(error) => {
                    tracing::warn!(error = error.message(), "the key of the cluster could not be renewed");
                    PAUSE
                }
            };
            sleep(pause).await;
        }
    }

    /// Takes the key that is in the folder now, or exchanges it if it is old. The time for which it will do.
    async fn refresh(&self) -> Result<Duration, Status> {
        let kept = self.read_again();
        let left = age(&self.path).map_or(RENEWAL, |age| RENEWAL.saturating_sub(age));
        if left.is_zero() {
            self.exchange(&kept).await?;
            return Ok(RENEWAL);
        }
        Ok(left)
    }

    async fn exchange(&self, old: &SecretString) -> Result<(), Status> {
        let mut answer = Err(Status::unavailable("there is no agent"));
        for agent in &self.agents {
            answer = answered(agent.clone().renew(bearing(old, RenewRequest {})?)).await;
            if answer.is_ok() {
                break;
            }
        }
        let fresh = answer?.into_inner().key.into();
        keep(&self.path, &fresh).map_err(|error| Status::internal(error.to_string()))?;
        tracing::info!("the key of the cluster is renewed");
        self.takes(fresh);
        Ok(())
    }

    /// Looks for another key than one that no agent takes any more: what another executor has put into the folder, or
    /// what the token is good for.
    pub(super) async fn replace(&self, refused: &SecretString) {
        let mut token = self.token.lock().await;
        if self.read_again().expose_secret() != refused.expose_secret() {
            return;
        }
        let Some(unused) = token.take() else {
            tracing::warn!("the key of the cluster does not count here: set another --join-token");
            return;
        };
        match join(&self.agents, &self.cluster, &self.path, &unused).await {
            Ok(key) => self.takes(key),
            Err(error) => {
                tracing::warn!(%error, "the token is good for no key");
                // One that nobody has seen may count yet.
                *token =
                    Some(unused).filter(|_| !matches!(&error, UplinkError::Join(why) if is_refusal(why)));
            }
        }
    }
}

/// Whether an agent takes a key, or a token, for none of the cluster's.
pub(super) fn is_refusal(status: &Status) -> bool {
    matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied)
}

/// Exchanges a token for a key at the first agent that takes it.
async fn join(
    agents: &[Agent],
    cluster: &str,
    path: &Path,
    token: &SecretString,
) -> Result<SecretString, UplinkError> {
    let mut answer = Err(Status::unavailable("there is no agent"));
    for agent in agents {
        let request = JoinRequest { token: token.expose_secret().to_owned() };
        let next = answered(agent.clone().join(request)).await.map(Response::into_inner);
        // That one refuses it says more than that others are away.
        if next.is_ok() || !answer.as_ref().is_err_and(is_refusal) {
            answer = next;
        }
        if answer.is_ok() {
            break;
        }
    }
    let joined = answer.map_err(UplinkError::Join)?;
    if !cluster.is_empty() && joined.cluster != cluster {
        return Err(UplinkError::OtherCluster { joined: joined.cluster, wanted: cluster.to_owned() });
    }
    tracing::info!(cluster = joined.cluster, "joined");
    let key = joined.key.into();
    keep(path, &key).map_err(|error| UplinkError::Keep { path: path.to_owned(), error })?;
    Ok(key)
}

/// A message from whoever has a key.
pub(super) fn bearing<T>(key: &SecretString, message: T) -> Result<Request<T>, Status> {
    let mut request = Request::new(message);
    let bearer = format!("Bearer {}", key.expose_secret());
    let mut value =
        MetadataValue::try_from(bearer).map_err(|_| Status::unauthenticated("the key is no key"))?;
    value.set_sensitive(true);
    request.metadata_mut().insert("authorization", value);
    Ok(request)
}

/// What a file keeps.
fn read(path: &Path) -> Option<SecretString> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim()).filter(|text| !text.is_empty()).map(SecretString::from)
}

/// How long it has been there.
fn age(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

/// Writes it anew, so that there is always a whole one.
fn keep(path: &Path, key: &SecretString) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&new)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    io::Write::write_all(&mut file, key.expose_secret().as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}
