//! The way of commands to Kubernetes clusters: a proxy that holds the credentials, and lets through what only reads.
//!
//! A command gets a kubeconfig with the operator's contexts and without any credential. Each of them leads to a
//! listener of this command alone, which adds the credential. So "read-only" holds by HTTP method and path, whatever
//! the command's text was.
//!
//! # Layout
//! * `source`, `kubeconfig`: the operator's kubeconfig
//! * `credential`, `exec`: what the executor shows an API server
//! * `upstream`: one API server as one context sees it
//! * `gate`, `generated`: the listener of a command, and the kubeconfig that leads to it
//! * `request`, `target`: what a request asks for, and whether it only reads
//! * `forward`, `channel`, `status`: passing it on, or saying why not
//! * `mask`: values of Secrets

mod channel;
mod credential;
mod exec;
mod forward;
mod gate;
mod generated;
mod kubeconfig;
mod mask;
mod request;
mod source;
mod status;
mod target;
mod upstream;

use std::{
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;

pub use gate::{Gate, Pass};
pub use source::Source;

use forward::Route;
use source::Stamp;
use upstream::Upstream;

/// How an executor deals with clusters.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where the credentials are.
    pub source: Source,
    /// Whether values of Secrets are shown.
    pub secrets: Secrets,
    /// As whom API servers are asked.
    pub impersonate: Impersonate,
}

/// Whether values of Secrets are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Secrets {
    /// Only their keys and sizes are.
    #[default]
    Masked,
    /// They are.
    Shown,
}

impl FromStr for Secrets {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "mask" => Ok(Self::Masked),
            "show" => Ok(Self::Shown),
            _ => Err(()),
        }
    }
}

/// As whom API servers are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Impersonate {
    /// As whoever the kubeconfig says.
    #[default]
    Nobody,
    /// As the principal on whose behalf the command runs. The kubeconfig's own user must be allowed to.
    Principal,
}

impl FromStr for Impersonate {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "none" => Ok(Self::Nobody),
            "principal" => Ok(Self::Principal),
            _ => Err(()),
        }
    }
}

/// Whether a command may change clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// It reads only.
    #[default]
    Refused,
    /// It was permitted as something that changes: by a person, or by a prefix that the operator or a person allowed.
    Granted,
}

/// What one command may do, and for whom it runs.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Whether it may change clusters.
    pub writes: Writes,
    /// The run that it belongs to.
    pub run: String,
    /// Its execution.
    pub execution: String,
    /// On whose behalf. Empty if that is not known.
    pub principal: String,
}

impl Access {
    /// What is added to the user agent, which is in every line of a cluster's audit log.
    fn user_agent(&self) -> String {
        let plain = |text: &str| {
            let kept = text.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.:".contains(*c));
            kept.take(64).collect::<String>()
        };
        format!("sleuth (run={}; execution={})", plain(&self.run), plain(&self.execution))
    }
}

/// The clusters of an executor.
#[derive(Debug)]
pub struct Clusters {
    settings: Settings,
    known: Mutex<Option<Arc<Known>>>,
}

/// What a kubeconfig said when it was last read.
#[derive(Debug)]
struct Known {
    stamp: Stamp,
    upstreams: Vec<Arc<Upstream>>,
    current: Option<String>,
}

impl Clusters {
    /// Reads nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, known: Mutex::default() }
    }

    /// What one command needs to reach clusters. A kubeconfig that cannot be used is said to whoever asks.
    pub fn pass(&self, access: Access) -> Pass {
        let known = self.known();
        let (access, channels) = (Arc::new(access), CancellationToken::new());
        let route = |upstream: &Arc<Upstream>| {
            Arc::new(Route {
                upstream: Arc::clone(upstream),
                access: Arc::clone(&access),
                secrets: self.settings.secrets,
                impersonate: self.settings.impersonate,
                channels: channel::Channels(channels.clone()),
            })
        };
        let routes = known.upstreams.iter().map(route).collect();
        Pass::new(routes, known.current.clone(), channels)
    }

    /// What the kubeconfig says now. It is read again when it has changed.
    fn known(&self) -> Arc<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let source = &self.settings.source;
        if let Some(own) = &*known
            && own.stamp.holds()
        {
            return Arc::clone(own);
        }
        Arc::clone(known.insert(Arc::new(Known::read(source))))
    }
}

impl Known {
    fn read(source: &Source) -> Self {
        match source.load() {
            Ok(loaded) => {
                let stamp = source.stamp(loaded.files());
                let usable = loaded.contexts.into_iter().map(Upstream::new).filter_map(|made| {
                    made.inspect_err(|error| tracing::warn!(%error, "a context is left out")).ok()
                });
                Self { stamp, upstreams: usable.map(Arc::new).collect(), current: loaded.current }
            }
            Err(error) => {
                tracing::error!(%error, "there are no clusters");
                let said = Upstream::unusable(error.to_string()).ok();
                let current = said.as_ref().map(|upstream| upstream.name.clone());
                let stamp = source.stamp(std::iter::empty());
                Self { stamp, upstreams: said.into_iter().map(Arc::new).collect(), current }
            }
        }
    }
}
