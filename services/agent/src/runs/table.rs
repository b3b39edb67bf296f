//! The runs of this agent: those that go on, and the last ones that have ended.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::RunId;
use tokio::sync::watch;

use super::Progress;

/// Ended runs that are still listed.
const LISTED: usize = 1000;

/// How many runs may go on at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    /// In all.
    pub(super) runs: usize,
    /// Of one account.
    pub(super) of_account: usize,
    /// Asked for with one key.
    pub(super) of_key: usize,
}

/// As many runs as there may be go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("{0} runs go on already, which is this agent's limit; try again later")]
    Agent(usize),
    #[error("{0} runs of the account go on already, which is its limit; try again later")]
    Account(usize),
    #[error("{0} runs go on already that were asked for with this key, which is its limit; try again later")]
    Key(usize),
}

/// All runs, by id: the order of their ids is that of their starts.
#[derive(Default)]
pub(super) struct Table(Mutex<Listed>);

#[derive(Default)]
struct Listed {
    runs: BTreeMap<RunId, Arc<Progress>>,
    running: usize,
    /// How many go on.
    count: watch::Sender<usize>,
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Listed> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a run that is to start, unless too many go on already.
    pub(super) fn admit(self: &Arc<Self>, run: &Arc<Progress>, most: Most) -> Result<Seat, Full> {
        let mut listed = self.lock();
        if listed.running >= most.runs {
            return Err(Full::Agent(listed.running));
        }
        let of_account = |other: &Progress| other.account == run.account;
        let of_key = |other: &Progress| of_account(other) && other.principal == run.principal;
        let going_on = listed.going_on(of_account);
        if going_on >= most.of_account {
            return Err(Full::Account(going_on));
        }
        let going_on = listed.going_on(of_key);
        // Who has no key has no limit of its own.
        if !run.principal.is_empty() && going_on >= most.of_key {
            return Err(Full::Key(going_on));
        }
        listed.running += 1;
        listed.tell();
        listed.runs.insert(run.id.clone(), Arc::clone(run));
        listed.forget();
        Ok(Seat { table: Arc::clone(self), run: run.id.clone(), ended_well: false })
    }

    /// Waits until none goes on.
    pub(super) async fn rests(&self) {
        let mut count = self.lock().count.subscribe();
        // The sender lives as long as the table.
        let _ = count.wait_for(|going_on| *going_on == 0).await;
    }

    pub(super) fn get(&self, id: &RunId) -> Option<Arc<Progress>> {
        self.lock().runs.get(id).cloned()
    }
}

impl Listed {
    fn going_on(&self, which: impl Fn(&Progress) -> bool) -> usize {
        self.runs.values().filter(|run| which(run) && run.outcome().is_none()).count()
    }

    fn tell(&self) {
        self.count.send_replace(self.running);
    }

    fn forget(&mut self) {
        while self.runs.len() > self.running.saturating_add(LISTED) {
            let oldest = self.runs.iter().find(|(_, run)| run.outcome().is_some()).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return };
            self.runs.remove(&oldest);
        }
    }
}

/// The place of a run among those that go on; it is free again when this is dropped. A run that was given up before
/// it ended was never there.
pub(super) struct Seat {
    table: Arc<Table>,
    run: RunId,
    ended_well: bool,
}

impl Seat {
    /// The run has ended and stays in the list.
    pub(super) fn keep_listed(mut self) {
        self.ended_well = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut listed = self.table.lock();
        listed.running = listed.running.saturating_sub(1);
        listed.tell();
        if !self.ended_well {
            listed.runs.remove(&self.run);
        }
    }
}
