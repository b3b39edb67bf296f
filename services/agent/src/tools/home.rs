//! The executor process that has the files of a session.

use std::sync::{Arc, Mutex, PoisonError};

/// Where the files of a session are, shared by the agents of a run. Nowhere until the first call that may make some.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home(Arc<Mutex<String>>);

impl Home {
    /// The process, as it calls itself; empty if there is none.
    pub(super) fn instance(&self) -> String {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The files are there from now on.
    pub(super) fn moves_to(&self, instance: &str) {
        instance.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The process has gone, and the files with it.
    pub(super) fn is_lost(&self) {
        self.moves_to("");
    }
}
