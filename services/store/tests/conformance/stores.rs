//! The stores that the suite runs on, and what tests of all of them need.

use std::{num::NonZeroUsize, path::Path, sync::Arc};

use domain::{AgentId, ContextSize, Event, EventKind, LogId, MessageId, RunId, RunStarted, Timestamp};
use futures_util::future::BoxFuture;
use store::{
    Batch, Creation, Error, Idempotency, Kind, Lease, Memory, Meta, NewLog, OwnerId, Postgres, Retention,
    Sqlite, Store,
};
use tempfile::TempDir;

pub(crate) const ALL: NonZeroUsize = NonZeroUsize::MAX;
pub(crate) const LIFE: std::time::Duration = std::time::Duration::from_secs(3600);

/// Runs each promise on each store.
macro_rules! promises {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] $(#[$meta])*
            async fn $name() { super::$name($crate::stores::memory()).await; })*
        }
        /// All promises, for stores that are started once for all of them.
        pub(crate) fn all() -> Vec<$crate::stores::Promise> {
            vec![$((stringify!($name), |bench| Box::pin($name(bench)))),*]
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] $(#[$meta])*
            async fn $name() { super::$name($crate::stores::sqlite()).await; })*
        }
    };
}
pub(crate) use promises;

/// The name of a promise, and what checks it.
pub(crate) type Promise = (&'static str, fn(Bench) -> BoxFuture<'static, ()>);

/// A store under test, and what it needs to live.
pub(crate) struct Bench {
    pub store: Arc<dyn Store>,
    _folder: Option<TempDir>,
}

pub(crate) fn memory() -> Bench {
    Bench { store: Arc::new(Memory::new(Retention::default())), _folder: None }
}

pub(crate) fn sqlite() -> Bench {
    let folder = TempDir::new().unwrap();
    let store = sqlite_in(folder.path()).store;
    Bench { store, _folder: Some(folder) }
}

pub(crate) fn sqlite_in(folder: &Path) -> Bench {
    Bench { store: Arc::new(Sqlite::open(folder).unwrap()), _folder: None }
}

pub(crate) async fn postgres(url: &str) -> Bench {
    Bench { store: Arc::new(Postgres::connect(url, None).await.unwrap()), _folder: None }
}

impl Bench {
    /// A log of a run that belongs to `owner`.
    pub(crate) async fn run(&self, id: &str, owner: &OwnerId) -> Lease {
        match self.store.create(new_run(id, owner, vec![])).await.unwrap() {
            Creation::New(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    /// Appends events after a position.
    pub(crate) async fn append(&self, lease: &Lease, after: u64, kinds: Vec<EventKind>) -> Result<(), Error> {
        self.store.append(lease, Batch::new(after, events(lease.log().as_str(), after, kinds))).await
    }

    /// The positions of a log.
    pub(crate) async fn positions(&self, log: &LogId) -> Vec<u64> {
        let mut found = Vec::new();
        loop {
            let page = self.store.read(log, found.last().copied().unwrap_or(0), ALL).await.unwrap();
            if page.is_empty() {
                return found;
            }
            found.extend(page.iter().map(|event| event.position));
        }
    }

    /// An owner that lives.
    pub(crate) async fn owner(&self, id: &str) -> OwnerId {
        let owner = OwnerId::new(id);
        self.store.heartbeat(&owner, LIFE).await.unwrap();
        owner
    }
}

pub(crate) fn log(id: &str) -> LogId {
    LogId::new(id)
}

pub(crate) fn events(run: &str, after: u64, kinds: Vec<EventKind>) -> Vec<Event> {
    let event = |(kind, position)| Event {
        run: RunId::new(run),
        position,
        time: Timestamp(1_700_000_000_123_456_789),
        agent: AgentId::main(),
        parent: None,
        kind,
    };
    kinds.into_iter().zip(after + 1..).map(event).collect()
}

pub(crate) fn new_run(id: &str, owner: &OwnerId, kinds: Vec<EventKind>) -> NewLog {
    let meta = Meta {
        account: "acme".into(),
        kind: Kind::Run,
        title: format!("question of {id}"),
        details: b"{}".to_vec(),
    };
    NewLog { id: log(id), owner: owner.clone(), meta, idempotency: None, events: events(id, 0, kinds) }
}

pub(crate) fn keyed(id: &str, owner: &OwnerId, key: &str, digest: u8) -> NewLog {
    let idempotency = Idempotency { scope: "acme".into(), key: key.into(), digest: [digest; 32] };
    NewLog { idempotency: Some(idempotency), ..new_run(id, owner, vec![began()]) }
}

pub(crate) fn delta(text: impl Into<String>) -> EventKind {
    EventKind::TextDelta { message: MessageId::new("m"), text: text.into() }
}

pub(crate) fn began() -> EventKind {
    EventKind::RunStarted(RunStarted {
        model: "m".into(),
        messages: vec![],
        overhead: ContextSize::default(),
        context_window: 1,
        max_output_tokens: 1,
        structured: false,
        client_tools: vec![],
        waits: false,
        subagents: domain::Subagents::default(),
        rlm: None,
        question: None,
        call: None,
        approvals: false,
        setup: Box::default(),
        runbooks: vec![],
        account: "acme".into(),
        principal: "someone".into(),
    })
}

pub(crate) fn ended() -> EventKind {
    EventKind::RunFinished { answer: "42".into(), reason: "stop".into() }
}
