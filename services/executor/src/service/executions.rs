//! The executions that this process knows, each by its caller's account and the id that the caller made.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::execution::{Call, Execution};

/// Names an execution. An account sees only its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) account: String,
    pub(super) id: String,
}

/// How many executions may be at work, and how long those that have ended are kept.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Running and waiting.
    pub(super) live: usize,
    pub(super) live_bytes: usize,
    pub(super) kept_for: Duration,
    pub(super) kept_executions: usize,
    pub(super) kept_bytes: usize,
}

/// What came of asking for an execution.
#[derive(Debug)]
pub(super) enum Admission {
    /// It is new and is to be driven.
    New(Arc<Execution>),
    /// The same call is known already.
    Known(Arc<Execution>),
    /// The id stands for another call.
    Conflict,
    /// There are too many.
    Full,
    /// No more are taken.
    Closed,
}

/// The table of executions.
#[derive(Debug)]
pub(super) struct Executions {
    instance: String,
    limits: Limits,
    /// Ends all of them.
    cancel: CancellationToken,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    known: HashMap<Key, Arc<Execution>>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<(Instant, Key, usize)>,
    ended_bytes: usize,
    /// No more are taken.
    closed: bool,
}

impl Executions {
    pub(super) fn new(instance: String, limits: Limits, cancel: CancellationToken) -> Self {
        Self { instance, limits, cancel, table: Mutex::default() }
    }

    /// Takes a call in, once.
    pub(super) fn admit(&self, key: &Key, call: Call) -> Admission {
        let mut table = self.table();
        table.forget(&self.limits);
        if let Some(known) = table.known.get(key) {
            if !known.call.is_same_work(&call) {
                return Admission::Conflict;
            }
            // With another permission, what was refused may run.
            if known.call.grant == call.grant || !known.was_refused() {
                return Admission::Known(Arc::clone(known));
            }
            table.drop_ended(key);
        }
        if table.closed {
            return Admission::Closed;
        }
        if table.known.len().saturating_sub(table.ended.len()) >= self.limits.live {
            return Admission::Full;
        }
        let cancel = self.cancel.child_token();
        let execution =
            Arc::new(Execution::new(&key.id, &self.instance, call, self.limits.live_bytes, cancel));
        table.known.insert(key.clone(), Arc::clone(&execution));
        Admission::New(execution)
    }

    /// Takes no more calls from now on.
    pub(super) fn close(&self) {
        self.table().closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.table().closed
    }

    pub(super) fn find(&self, key: &Key) -> Option<Arc<Execution>> {
        let mut table = self.table();
        table.forget(&self.limits);
        table.known.get(key).map(Arc::clone)
    }

    /// Notes that an execution has ended, so that it is forgotten in time.
    pub(super) fn retire(&self, key: Key) {
        let mut table = self.table();
        let ended = table.known.get(&key).filter(|execution| execution.is_finished());
        let Some(bytes) = ended.map(|execution| execution.bytes()) else { return };
        table.ended_bytes += bytes;
        table.ended.push_back((Instant::now(), key, bytes));
        table.forget(&self.limits);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn drop_ended(&mut self, key: &Key) {
        self.known.remove(key);
        let dropped = &mut self.ended_bytes;
        self.ended.retain(|(_, own, bytes)| {
            let keeps = own != key;
            *dropped -= if keeps { 0 } else { *bytes };
            keeps
        });
    }

    fn forget(&mut self, limits: &Limits) {
        while let Some((at, _, _)) = self.ended.front() {
            let too_many = self.ended.len() > limits.kept_executions || self.ended_bytes > limits.kept_bytes;
            if !too_many && at.elapsed() < limits.kept_for {
                return;
            }
            if let Some((_, key, bytes)) = self.ended.pop_front() {
                self.ended_bytes -= bytes;
                self.known.remove(&key);
            }
        }
    }
}
