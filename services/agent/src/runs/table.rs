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
}

/// As many runs as there may be go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("{0} runs go on already, which is this agent's limit; try again later")]
    Agent(usize),
    #[error("{0} runs of the account go on already, which is its limit; try again later")]
    Account(usize),
}

/// All runs, by id: the order of their ids is that of their starts.
#[derive(Default)]
pub(super) struct Table(Mutex<Listed>);

#[derive(Default)]
struct Listed {
    runs: BTreeMap<RunId, Arc<Progress>>,
    going_on: usize,
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
        if listed.going_on >= most.runs {
            return Err(Full::Agent(listed.going_on));
        }
        let of_account = listed.of_account(&run.account);
        if of_account >= most.of_account {
            return Err(Full::Account(of_account));
        }
        listed.going_on += 1;
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
    fn of_account(&self, account: &str) -> usize {
        let goes_on = |run: &&Arc<Progress>| run.account == account && run.outcome().is_none();
        self.runs.values().filter(goes_on).count()
    }

    fn tell(&self) {
        self.count.send_replace(self.going_on);
    }

    fn forget(&mut self) {
        while self.runs.len() > self.going_on.saturating_add(LISTED) {
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
        listed.going_on = listed.going_on.saturating_sub(1);
        listed.tell();
        if !self.ended_well {
            listed.runs.remove(&self.run);
        }
    }
}
