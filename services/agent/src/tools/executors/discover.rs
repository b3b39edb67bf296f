//! Finds the executors that a name stands for, and keeps looking: addresses come and go, and so do executors.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use domain::ToolProfile;
use runtime::{address, place::Place};
use tokio::{
    net::lookup_host,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use wire::{Transport, executor::ListToolsRequest};

use super::{Member, Pool};

/// How often names are resolved, and executors asked who they are.
const LOOK: Duration = Duration::from_secs(5);
/// How often those that failed are thought of.
const TICK: Duration = Duration::from_millis(250);
/// How long a name may take.
const RESOLVE_TIME: Duration = Duration::from_secs(4);
/// How long an executor may take to say who it is.
const ANSWER_TIME: Duration = Duration::from_secs(4);

/// Opens the way to one place.
pub type Dial = Arc<dyn Fn(&Place) -> Result<Transport, address::Error> + Send + Sync>;

/// The executors behind a name. The last clone that is dropped ends the search.
#[derive(Clone)]
pub struct Discovered {
    pool: Arc<Pool>,
    is_empty: bool,
    _search: Arc<AbortOnDropHandle<()>>,
}

impl fmt::Debug for Discovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovered").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl Discovered {
    /// Looks for executors at one address or several, separated by commas: `http://HOST:PORT`, where all addresses
    /// of the host count, or `unix:PATH`. At `none` there are none.
    ///
    /// # Errors
    /// If one of them is no address.
    pub fn behind(services: &str, dial: Dial) -> Result<Self, address::Error> {
        let services = services.split(',').map(str::trim).filter(|service| !matches!(*service, "" | "none"));
        let services = services.map(Place::of).collect::<Result<Vec<_>, _>>()?;
        let is_empty = services.is_empty();
        let pool = Arc::new(Pool::default());
        let mut search = Search { services, dial, pool: Arc::clone(&pool), known: BTreeMap::new() };
        search.set(search.services.iter().filter(|place| place.name().is_none()).cloned().collect());
        let search = AbortOnDropHandle::new(tokio::spawn(search.run()));
        Ok(Self { pool, is_empty, _search: Arc::new(search) })
    }

    /// Whether there is nowhere to look.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

struct Search {
    services: Vec<Place>,
    dial: Dial,
    pool: Arc<Pool>,
    known: BTreeMap<Place, Arc<Member>>,
}

impl Search {
    async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut probes, mut next) = (JoinSet::new(), Instant::now());
        loop {
            let now = ticks.tick().await;
            while probes.try_join_next().is_some() {}
            let all = now >= next;
            if all {
                next = now + LOOK;
                self.resolve().await;
            }
            for member in self.known.values() {
                if all && member.works() || member.take_due(now) {
                    probes.spawn(probe(Arc::clone(member)));
                }
            }
        }
    }

    async fn resolve(&mut self) {
        let mut places = BTreeSet::new();
        for service in &self.services {
            match resolved(service).await {
                Ok(found) => places.extend(found),
                Err(error) => {
                    tracing::warn!(%service, %error, "a name of executors cannot be resolved");
                    // What was known of it still counts.
                    places.extend(self.known.keys().filter(|place| place.is_of(service)).cloned());
                }
            }
        }
        if !places.iter().eq(self.known.keys()) {
            self.set(places);
        }
    }

    fn set(&mut self, places: BTreeSet<Place>) {
        let mut known = std::mem::take(&mut self.known);
        for place in places {
            if let Some(member) = known.remove(&place) {
                self.known.insert(place, member);
                continue;
            }
            match (self.dial)(&place) {
                Ok(transport) => {
                    drop(self.known.insert(place.clone(), Member::new(place.to_string(), transport)));
                }
                Err(error) => tracing::warn!(%place, %error, "an executor cannot be called"),
            }
        }
        self.pool.set(self.known.values().cloned().collect());
    }
}

/// All places that a service stands for.
async fn resolved(service: &Place) -> std::io::Result<Vec<Place>> {
    let Some(name) = service.name() else { return Ok(vec![service.clone()]) };
    let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
    let found = timeout(RESOLVE_TIME, lookup_host(name)).await.map_err(late)??;
    Ok(found.map(|at| service.at(at)).collect())
}

async fn probe(member: Arc<Member>) {
    let mut client = member.client();
    let late = |_| Status::deadline_exceeded("it did not say who it is");
    let asked = timeout(ANSWER_TIME, client.list_tools(ListToolsRequest::default())).await;
    match asked.map_err(late).and_then(|answer| answer) {
        Ok(list) => member.told(ToolProfile::default(), list.into_inner()),
        Err(status) => member.failed(&status),
    }
}
