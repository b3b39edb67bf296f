//! Clusters whose executors have dialled in: which there are, and the ways to them.
//!
//! # Layout
//! * [`Admission`]: who may register which cluster; somebody else knows
//! * [`Clusters`]: those that are connected
//! * `link`: `sleuth.cluster.v1`, on which executors come in

mod link;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;
use tonic::{Status, async_trait};

pub use link::Link;

use crate::tools::executors::{Member, Pool};

/// A cluster that has proved who it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Joined {
    /// The account that it belongs to.
    pub account: String,
    /// Its name within the account.
    pub cluster: String,
}

/// Knows which keys are those of clusters.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Exchanges a token, which counts once, for a cluster's key.
    async fn join(&self, token: &str) -> Result<(Joined, String), Status>;
    /// Exchanges a cluster's key for a fresh one.
    async fn renew(&self, key: &str) -> Result<String, Status>;
    /// Whose key it is.
    async fn admit(&self, key: &str) -> Result<Joined, Status>;
}

/// The clusters that are connected here. Clones are the same.
#[derive(Clone, Debug)]
pub struct Clusters(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How the cluster of the agent's own executors is called.
    own: String,
    connected: Mutex<BTreeMap<Joined, Arc<Pool>>>,
    closing: CancellationToken,
}

/// A cluster that is not connected.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the cluster `{cluster}` is not connected; connected are: {}", among(.connected))]
pub(crate) struct NotConnected {
    cluster: String,
    connected: Vec<String>,
}

fn among(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl Clusters {
    pub(crate) fn new(own: &str) -> Self {
        let (connected, closing) = (Mutex::default(), CancellationToken::new());
        Self(Arc::new(Shared { own: own.to_owned(), connected, closing }))
    }

    /// The name that no cluster can have that dials in.
    pub(crate) fn own(&self) -> &str {
        &self.0.own
    }

    /// Names of the connected clusters of an account, and the executors of each, in their order.
    pub(crate) fn list(&self, account: &str) -> Vec<(String, Vec<Arc<Member>>)> {
        let connected = self.connected();
        let own = connected.iter().filter(|(joined, _)| joined.account == account);
        let own = own.map(|(joined, pool)| (joined.cluster.clone(), pool.members().to_vec()));
        own.filter(|(_, members)| !members.is_empty()).collect()
    }

    /// The executors of a cluster of an account.
    pub(crate) fn pool(&self, account: &str, cluster: &str) -> Result<Arc<Pool>, NotConnected> {
        let asked = Joined { account: account.to_owned(), cluster: cluster.to_owned() };
        let found = self.connected().get(&asked).filter(|pool| !pool.members().is_empty()).cloned();
        found.ok_or_else(|| NotConnected {
            cluster: asked.cluster,
            connected: self.list(account).into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// Ends the ways to all clusters, and lets none in any more.
    pub(crate) fn close(&self) {
        self.0.closing.cancel();
        self.connected().clear();
    }

    fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    fn add(&self, joined: &Joined, member: &Arc<Member>) {
        let mut connected = self.connected();
        connected.entry(joined.clone()).or_default().add(member);
        report(&connected);
    }

    fn remove(&self, joined: &Joined, member: &Arc<Member>) {
        let connected = self.connected();
        // The pool stays: runs wait for the executor to come back to it.
        if let Some(pool) = connected.get(joined) {
            pool.remove(member);
        }
        report(&connected);
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<Joined, Arc<Pool>>> {
        // Nothing in here panics half-way through a change.
        self.0.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report(connected: &BTreeMap<Joined, Arc<Pool>>) {
    let clusters = connected.values().filter(|pool| !pool.members().is_empty()).count();
    metrics::gauge!("sleuth_agent_clusters").set(u32::try_from(clusters).unwrap_or(u32::MAX));
}
