//! The executor process that has the files of a session.

use std::sync::{Arc, Mutex, PoisonError};

use domain::EventKind;

/// Where the files of a session are, shared by the agents of a run. Nowhere until the first call that may make some.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home(Arc<Mutex<String>>);

impl Home {
    /// Where the calls of a run went that another agent has begun.
    pub(crate) fn of<'a>(events: impl DoubleEndedIterator<Item = &'a EventKind>) -> Self {
        let instance = events.rev().find_map(|event| match event {
            EventKind::CallPlaced { placement, .. } if !placement.instance.is_empty() => {
                Some(placement.instance.clone())
            }
            _ => None,
        });
        Self(Arc::new(Mutex::new(instance.unwrap_or_default())))
    }

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
