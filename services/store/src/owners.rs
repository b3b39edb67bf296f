//! Which owners live, where all of them are in this process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::OwnerId;

/// Until when each owner lives.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<OwnerId, Instant>>);

impl Owners {
    fn lock(&self) -> MutexGuard<'_, HashMap<OwnerId, Instant>> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn beat(&self, owner: &OwnerId, ttl: Duration) {
        let now = Instant::now();
        let mut owners = self.lock();
        owners.retain(|_, until| *until > now);
        if let Some(until) = now.checked_add(ttl).filter(|until| *until > now) {
            owners.insert(owner.clone(), until);
        } else {
            owners.remove(owner);
        }
    }

    pub(crate) fn live(&self, owner: &OwnerId) -> bool {
        self.lock().get(owner).is_some_and(|until| *until > Instant::now())
    }
}
