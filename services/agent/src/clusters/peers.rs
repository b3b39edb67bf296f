//! Agents that share a store tell each other which executors are linked to them, so that each reaches all of them.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use prost::Message as _;
use runtime::{address::Error, auth::ApiKey, place::Place};
use store::{OwnerId, Store};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use uuid::Uuid;
use wire::{
    Transport,
    cluster::{AgentNotice, LinkNotice},
};

use super::{
    Clusters, Joined,
    relay::{self, Relay},
};
use crate::tools::executors::Member;

/// How often others are listened to.
const LISTEN: Duration = Duration::from_millis(500);
/// How often it is said which executors are linked here, if nothing changes, and for how long it counts.
const SAY: Duration = Duration::from_secs(3);
const COUNTS: Duration = Duration::from_secs(10);
/// How long the store may take.
const STORE_TIME: Duration = Duration::from_secs(5);

/// Opens the way to an agent.
pub type Call = Arc<dyn Fn(&Place) -> Result<Transport, Error> + Send + Sync>;

/// This agent among those that share its store.
pub(crate) struct Peers {
    clusters: Clusters,
    store: Arc<dyn Store>,
    call: Call,
    /// Where others reach this agent; they do not if it is not said.
    address: Option<Place>,
    key: ApiKey,
    me: OwnerId,
    /// Ways to other agents, by what they say of themselves.
    ways: HashMap<(Place, String), Transport>,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").field("me", &self.me).finish_non_exhaustive()
    }
}

/// A link that another agent speaks of, and the way there.
#[derive(Debug)]
struct Heard {
    link: LinkNotice,
    agent: Place,
    key: String,
}

/// Where an agent says that it is. None if that is nowhere.
fn place(notice: &AgentNotice) -> Option<Place> {
    let named = Place::of(&notice.address).ok()?;
    if notice.at.is_empty() { Some(named) } else { Some(named.at(notice.at.parse().ok()?)) }
}

impl Peers {
    pub(crate) fn new(clusters: Clusters, store: Arc<dyn Store>, address: Option<Place>, call: Call) -> Self {
        let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let me = OwnerId::new(format!("agent_{}", Uuid::now_v7().simple()));
        Self { clusters, store, call, address, key: ApiKey::new(secret), me, ways: HashMap::new() }
    }

    /// What serves the executors that are linked here to other agents.
    pub(crate) fn relay(&self) -> Relay {
        Relay::new(self.clusters.clone(), self.key.clone())
    }

    /// Speaks and listens until the clusters are closed.
    pub(crate) async fn keep(mut self) {
        let mut ticks = interval(LISTEN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said = None;
        loop {
            let changed = tokio::select! {
                () = self.clusters.closing().cancelled() => break,
                _ = ticks.tick() => false,
                () = self.clusters.changed() => true,
            };
            if changed || said.is_none_or(|at: Instant| at.elapsed() >= SAY) {
                said = self.say(COUNTS).await.then(Instant::now);
            }
            self.listen().await;
        }
        self.say(Duration::ZERO).await;
    }

    /// Says which executors are linked here. False if nobody could have heard it.
    async fn say(&self, counts: Duration) -> bool {
        let Some(address) = &self.address else { return true };
        let notice = AgentNotice {
            address: address.service().to_owned(),
            at: address.address().map(|at| at.to_string()).unwrap_or_default(),
            key: self.key.expose().to_owned(),
            links: self.clusters.links(),
        };
        let said = self.store.notify(&self.me, notice.encode_to_vec(), counts);
        match timeout(STORE_TIME, said).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "other agents do not learn which clusters are linked here");
                false
            }
            Err(_) => false,
        }
    }

    /// Hears which executors are linked elsewhere. While the store does not answer, what was heard last counts.
    async fn listen(&mut self) {
        match timeout(STORE_TIME, self.store.notices()).await {
            Ok(Ok(notices)) => self.hear(notices),
            Ok(Err(error)) => tracing::debug!(%error, "other agents cannot be heard"),
            Err(_) => {}
        }
    }

    fn hear(&mut self, notices: Vec<(OwnerId, Vec<u8>)>) {
        let mut newest: BTreeMap<(Joined, String), Heard> = BTreeMap::new();
        for (from, text) in notices {
            if from == self.me {
                continue;
            }
            let Ok(notice) = AgentNotice::decode(text.as_slice()) else { continue };
            let Some(agent) = place(&notice) else { continue };
            for link in notice.links {
                let cluster = Joined { account: link.account.clone(), cluster: link.cluster.clone() };
                let heard = Heard { agent: agent.clone(), key: notice.key.clone(), link };
                let place = (cluster, heard.link.executor.clone());
                // An executor that has moved is where it came last.
                if newest.get(&place).is_none_or(|other| other.link.since < heard.link.since) {
                    newest.insert(place, heard);
                }
            }
        }
        self.ways.retain(|(agent, key), _| newest.values().any(|it| it.agent == *agent && it.key == *key));
        self.clusters.forget_remote(|cluster, member| {
            let place = (cluster.clone(), member.name().to_owned());
            newest.get(&place).is_some_and(|heard| member.is_link(&heard.agent.to_string(), heard.link.since))
        });
        for ((cluster, executor), heard) in newest {
            if self.clusters.lacks(&cluster, &executor, &heard.agent.to_string(), heard.link.since) {
                self.reach(&cluster, &executor, &heard);
            }
        }
    }

    /// Has an executor take calls through the agent that it is linked to.
    fn reach(&mut self, cluster: &Joined, executor: &str, heard: &Heard) {
        let place = (heard.agent.clone(), heard.key.clone());
        let way = match self.ways.get(&place) {
            Some(way) => way.clone(),
            None => match (self.call)(&heard.agent) {
                Ok(way) => self.ways.entry(place).or_insert(way).clone(),
                Err(error) => return tracing::warn!(%error, "another agent cannot be called"),
            },
        };
        let Some(transport) = relay::through(way, &ApiKey::new(heard.key.clone()), cluster, executor) else {
            return;
        };
        let LinkNotice { instance, since, .. } = &heard.link;
        let member = Member::through(executor.to_owned(), transport, &heard.agent.to_string(), *since);
        member.is(instance);
        self.clusters.add(cluster, &member);
        tracing::info!(
            account = cluster.account,
            cluster = cluster.cluster,
            executor,
            agent = %heard.agent,
            "an executor is reached through another agent"
        );
    }
}
