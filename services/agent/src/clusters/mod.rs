//! Clusters whose executors have dialled in: which there are, and the ways to them.
//!
//! # Layout
//! * [`Admission`]: who may register which cluster; somebody else knows
//! * [`Clusters`]: those that are connected
//! * `link`: `sleuth.cluster.v1`, on which executors come in
//! * `peers`: agents that share a store tell each other which executors are linked to them
//! * `relay`: and call them through each other

mod link;
mod peers;
mod relay;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::{Status, async_trait};
use wire::{Transport, cluster::LinkNotice};

pub use link::Link;
pub(crate) use peers::Peers;
pub use {peers::Call, relay::Relay};

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
    /// Somebody came or went.
    changed: Notify,
    /// Executors are to go elsewhere.
    leaving: CancellationToken,
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
        let (connected, changed, leaving, closing) = Default::default();
        Self(Arc::new(Shared { own: own.to_owned(), connected, changed, leaving, closing }))
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

    /// The executors of a cluster of an account, also if it is yet to come back.
    pub(crate) fn expected(&self, account: &str, cluster: &str) -> Arc<Pool> {
        let asked = Joined { account: account.to_owned(), cluster: cluster.to_owned() };
        Arc::clone(self.connected().entry(asked).or_default())
    }

    /// The executors that are linked here.
    fn links(&self) -> Vec<LinkNotice> {
        let connected = self.connected();
        let members = connected.iter().flat_map(|(joined, pool)| {
            pool.members().iter().map(|member| (joined, Arc::clone(member))).collect::<Vec<_>>()
        });
        let links = members.filter_map(|(joined, member)| {
            Some(LinkNotice {
                account: joined.account.clone(),
                cluster: joined.cluster.clone(),
                executor: member.name().to_owned(),
                instance: member.instance(),
                since: member.linked_since()?,
            })
        });
        links.collect()
    }

    /// The way to an executor that is linked here.
    fn linked(&self, cluster: &Joined, executor: &str) -> Option<Transport> {
        let pool = self.connected().get(cluster).cloned()?;
        let members = pool.members();
        let found =
            members.iter().find(|member| member.name() == executor && member.linked_since().is_some());
        found.map(|member| member.transport())
    }

    /// Whether an executor that another agent has is to be reached through it: it is not here, or is to leave.
    fn lacks(&self, cluster: &Joined, executor: &str, agent: &str, link: u64) -> bool {
        let pool = self.connected().get(cluster).cloned();
        let members = pool.map(|pool| pool.members()).unwrap_or_default();
        members
            .iter()
            .all(|member| member.name() != executor || (member.leaves() && !member.is_link(agent, link)))
    }

    /// Removes the executors that other agents had and that are not to be kept.
    fn forget_remote(&self, keep: impl Fn(&Joined, &Member) -> bool) {
        let connected = self.connected();
        for (joined, pool) in connected.iter() {
            let gone = |member: &&Arc<Member>| member.agent().is_some() && !keep(joined, member);
            for member in pool.members().iter().filter(gone) {
                pool.remove(member);
            }
        }
        report(&connected);
    }

    /// Waits until somebody comes or goes.
    async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Has all executors that are linked here go elsewhere, while what they do goes on.
    pub(crate) fn leave(&self) {
        self.0.leaving.cancel();
    }

    /// Waits until another has taken the place of an executor that is to come again.
    async fn replaced(&self, cluster: &Joined, member: &Arc<Member>) {
        let pool = self.connected().get(cluster).cloned();
        if let Some(pool) = pool {
            pool.successor(member).await;
        }
    }

    fn leaving(&self) -> &CancellationToken {
        &self.0.leaving
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
        self.0.changed.notify_one();
    }

    fn remove(&self, joined: &Joined, member: &Arc<Member>) {
        let connected = self.connected();
        // The pool stays: runs wait for the executor to come back to it.
        if let Some(pool) = connected.get(joined) {
            pool.remove(member);
        }
        report(&connected);
        self.0.changed.notify_one();
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<Joined, Arc<Pool>>> {
        // Nothing in here panics half-way through a change.
        self.0.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report(connected: &BTreeMap<Joined, Arc<Pool>>) {
    let clusters = connected.values().filter(|pool| !pool.members().is_empty()).count();
    metrics::gauge!("sleuth_agent_clusters").set(u32::try_from(clusters).unwrap_or(u32::MAX));
    let members = connected.values().flat_map(|pool| pool.members().to_vec());
    let (here, elsewhere): (Vec<_>, Vec<_>) = members.partition(|member| member.agent().is_none());
    for (place, links) in [("here", here.len()), ("peer", elsewhere.len())] {
        metrics::gauge!("sleuth_agent_links", "at" => place).set(u32::try_from(links).unwrap_or(u32::MAX));
    }
}
