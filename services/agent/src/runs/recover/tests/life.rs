//! Agents that live, die and come back, by a clock that goes on only when all of them wait.

use std::{cell::Cell, num::NonZeroUsize, sync::Arc, time::Duration};

use domain::{Event, Limits, LogId, RunId};
use futures_util::StreamExt as _;
use model::{Catalogue, Model, Settings};
use store::{Kind, Memory, Query, Store};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time::{Instant, advance, sleep, timeout},
};
use wire::{agent::RunInfo, executor::tool_executor_server::ToolExecutorServer};

use super::{hands::Hands, oracle::Oracle};
use crate::{
    config::Config,
    runs::{Question, Reading, Refusal, Runs},
    sessions::Sessions,
    tools::{Tools, executors::Discovered},
};

/// Far longer than a run takes. No time of the machine's passes.
const ENOUGH: Duration = Duration::from_secs(24 * 60 * 60);

/// What all agents share.
pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    pub(super) hands: Hands,
    oracle: Arc<Oracle>,
    pub(super) limits: Limits,
    /// How long a run goes on without readers.
    pub(super) grace: Duration,
    clock: Cell<Instant>,
}

/// An agent. Nothing of it goes on but while it is let live: otherwise it is as if its machine slept.
pub(super) struct Life<'a> {
    world: &'a World,
    runtime: Runtime,
    runs: Arc<Runs>,
}

/// When an agent dies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// After so long.
    Time(Duration),
    /// After so many events, and so many breaths more.
    Events(u64, u8),
}

impl World {
    pub(super) fn new(dice: &[u8]) -> Self {
        let decision_time = Duration::from_secs(60);
        let limits =
            Limits { steps: 12, parallel_tools: 2, wall_time: ENOUGH, decision_time, ..Limits::default() };
        let (store, hands, oracle) = (Arc::new(Memory::default()), Hands::default(), Oracle::new(dice));
        let grace = Config::default().disconnect_grace;
        Self { store, hands, oracle, limits, grace, clock: Cell::new(Instant::now()) }
    }

    /// A new agent, which looks for runs that nobody drives.
    pub(super) fn live(&self) -> Life<'_> {
        self.live_for(|_| ())
    }

    /// The same, and this is told of sessions that nobody works on.
    pub(super) fn live_for(&self, session: impl Fn(LogId) + Send + Sync + 'static) -> Life<'_> {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let runs = {
            let _inside = runtime.enter();
            let hands = wire::transport(ToolExecutorServer::new(self.hands.clone()));
            let executors = Discovered::behind("unix:/hands", Arc::new(move |_| Ok(hands.clone()))).unwrap();
            let config = Config {
                limits: self.limits,
                disconnect_grace: self.grace,
                hands_over: true,
                ..Config::default()
            };
            let oracle: Arc<dyn Model> = Arc::clone(&self.oracle) as _;
            let models = Catalogue::load(None, &|_| None, Settings::default(), oracle).unwrap();
            let tools = Tools::new(executors, &config);
            let runs = Arc::new(Runs::new(config, models, tools, Arc::clone(&self.store)));
            runs.keep_recovering(session);
            runs
        };
        Life { world: self, runtime, runs }
    }

    /// What the store, which makes nobody wait, says now.
    pub(super) fn now<T>(&self, asked: impl Future<Output = T>) -> T {
        Builder::new_current_thread().build().unwrap().block_on(asked)
    }

    /// The events of a log.
    pub(super) fn reads(&self, log: &LogId) -> Vec<Arc<Event>> {
        self.now(self.store.read(log, 0, NonZeroUsize::MAX)).unwrap()
    }
}

impl Life<'_> {
    /// Lets it live until something has happened.
    pub(super) fn until<T>(&self, happens: impl Future<Output = T>) -> T {
        self.runtime.block_on(async {
            advance(self.world.clock.get().saturating_duration_since(Instant::now())).await;
            let happened = timeout(ENOUGH, happens).await.expect("it happens");
            self.world.clock.set(Instant::now());
            happened
        })
    }

    /// Lets it live for a time.
    pub(super) fn lives_for(&self, time: Duration) {
        self.until(async { sleep(time).await });
    }

    /// Lets it drain for a time, which is too short to end.
    pub(super) fn drains_for(&self, time: Duration) {
        let drained = self.until(async { timeout(time, self.runs.shutdown()).await });
        assert!(drained.is_err(), "it has ended");
    }

    /// Lets it leave what it drives to others.
    pub(super) fn hands_over(&self) {
        self.until(self.runs.shutdown());
    }

    /// Its sessions.
    pub(super) fn sessions(&self) -> Arc<Sessions> {
        Arc::new(Sessions::new(Arc::clone(&self.runs)))
    }

    pub(super) fn begins(&self, question: Question) -> LogId {
        let reading = self.until(self.runs.start(question));
        LogId::from(reading.ok().unwrap().run())
    }

    /// The same for a start that may fail.
    pub(super) fn tries(&self, question: Question) -> Option<Refusal> {
        self.until(self.runs.start(question)).err()
    }

    /// Begins a run whose caller does not stay to hear of it.
    pub(super) fn begins_for_nobody(&self, question: Question) -> LogId {
        let limit = NonZeroUsize::MIN;
        self.until(async {
            let starting = Box::pin(self.runs.start(question));
            assert!(futures_util::poll!(starting).is_pending(), "it takes a while");
            loop {
                let query = Query { account: "a".to_owned(), kind: Kind::Run, before: None, limit };
                match self.world.store.list(query).await.unwrap().first() {
                    Some(begun) => return begun.log.clone(),
                    None => sleep(Duration::from_secs(1)).await,
                }
            }
        })
    }

    /// Begins a run whose reader here leaves when somebody reads it through another agent.
    pub(super) fn begins_for_another(&self, question: Question) -> LogId {
        self.until(async {
            let reading = self.runs.start(question).await.ok().unwrap();
            let log = LogId::from(reading.run());
            self.world.store.post(&log, "reading/1", Vec::new()).await.unwrap();
            let Reading::Here(reader) = &reading else { panic!("it is driven here") };
            while reader.run().state().elsewhere.is_none() {
                sleep(Duration::from_secs(1)).await;
            }
            log
        })
    }

    /// Lets it live until it knows nothing of a run.
    pub(super) fn forgets(&self, log: &LogId) {
        let run = RunId::new(log.as_str());
        self.until(async {
            while self.runs.find(&run, "a").await.unwrap().is_some() {
                sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Lets it live until the run has ended.
    pub(super) fn ends(&self, log: &LogId) {
        self.until(end(&self.world.store, log));
    }

    /// The same, but at most up to a moment. Whether the run has ended.
    pub(super) fn ends_before(&self, moment: Moment, log: &LogId) -> bool {
        self.until(async {
            let comes = async {
                match moment {
                    Moment::Time(time) => sleep(time).await,
                    Moment::Events(events, breaths) => {
                        further(&self.world.store, log, events).await;
                        for _ in 0..breaths {
                            yield_now().await;
                        }
                    }
                }
            };
            tokio::select! {
                () = end(&self.world.store, log) => true,
                () = comes => false,
            }
        })
    }

    /// What it shows of a run of another agent in a list.
    pub(super) fn lists(&self, log: &LogId) -> RunInfo {
        self.until(async {
            let found = self.runs.find(&RunId::new(log.as_str()), "a").await.unwrap().unwrap();
            self.runs.summary(&found).await.unwrap()
        })
    }

    /// Lets it live until the run comes further. The time that this took.
    pub(super) fn takes_over(&self, log: &LogId) -> Duration {
        self.until(async {
            let began = Instant::now();
            further(&self.world.store, log, 1).await;
            began.elapsed()
        })
    }
}

async fn end(store: &Arc<dyn Store>, log: &LogId) {
    let mut events = Box::pin(store::tail(Arc::clone(store), &RunId::new(log.as_str()), 0));
    while let Some(event) = events.next().await {
        event.unwrap();
    }
}

async fn further(store: &Arc<dyn Store>, log: &LogId, events: u64) {
    let mut head = store.head(log).await.unwrap();
    let before = head.borrow().position;
    head.wait_for(|head| head.position >= before + events).await.unwrap();
}
