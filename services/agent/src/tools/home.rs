//! The executor process that has the files of a session.

use std::sync::{Arc, Mutex, PoisonError};

use domain::EventKind;

/// Where the files of a session are, shared by the agents of a run. Nowhere until the first call that may make some.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home(Arc<Mutex<String>>);

impl Home {
    /// At a process, as it calls itself; empty if there is none.
    pub(crate) fn at(instance: String) -> Self {
        Self(Arc::new(Mutex::new(instance)))
    }

    /// Where the files are after these events of a run that has some.
    pub(crate) fn of<'a>(events: impl IntoIterator<Item = &'a EventKind>) -> Self {
        let home = Self::default();
        events.into_iter().for_each(|event| home.follow(event));
        home
    }

    /// Takes an event of such a run into account.
    pub(crate) fn follow(&self, event: &EventKind) {
        match event {
            EventKind::RunStarted(started) if started.call.is_none() => self.moves_to(&started.setup.home),
            EventKind::CallPlaced { placement, .. } => self.moves_to(&placement.instance),
            _ => {}
        }
    }

    /// The process, as it calls itself; empty if there is none.
    pub(crate) fn instance(&self) -> String {
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

#[cfg(test)]
mod tests {
    use domain::{CallId, Placement};

    use super::*;

    #[test]
    fn the_last_placement_counts_and_files_that_are_lost_are_nowhere() {
        let placed = |instance: &str| EventKind::CallPlaced {
            call: CallId::new("c"),
            placement: Placement { executor: "e".to_owned(), instance: instance.to_owned() },
        };
        for (instances, home) in [(&["i1"][..], "i1"), (&["i1", "i2"], "i2"), (&["i1", "i2", ""], "")] {
            let events: Vec<_> = instances.iter().map(|instance| placed(instance)).collect();
            assert_eq!(Home::of(&events).instance(), home, "{instances:?}");
        }
    }
}
