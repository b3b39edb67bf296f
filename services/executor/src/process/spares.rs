//! Launchers that are started ahead. Most of what a sandbox takes is the same for the next command of its kind, and is
//! done while a model thinks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::supervise::{Launcher, Waiting};
use crate::sandbox::{Access, Layers, View};

/// How long one is kept that nobody needs.
const KEPT: Duration = Duration::from_secs(60);

/// Commands whose launchers can stand in for each other.
type Kind = (View, Layers);

/// At most one spare of each kind. Dropping them ends them.
#[derive(Debug, Default)]
pub(super) struct Spares(Mutex<HashMap<Kind, Seat>>);

#[derive(Debug)]
struct Seat {
    state: State,
    /// Fills the seat, and removes it when its time is over.
    _keeper: AbortOnDropHandle<()>,
}

#[derive(Debug)]
enum State {
    Filling,
    Filled(Box<Waiting>),
    Taken,
}

impl Spares {
    /// One for a command with this access. It has no command yet, and never had one.
    pub(super) fn take(&self, launcher: &Launcher, access: &Access) -> Option<Waiting> {
        let kind = kind(launcher, access)?;
        let mut spare = self.seats().get_mut(&kind)?.state.take()?;
        spare.started.waits().then_some(spare)
    }

    /// Starts the next one for commands with such an access, now that one has ended.
    pub(super) fn renew(self: &Arc<Self>, launcher: &Launcher, access: &Access) {
        let Some(kind) = kind(launcher, access) else { return };
        let mut seats = self.seats();
        if seats.get(&kind).is_some_and(|seat| !matches!(seat.state, State::Taken)) {
            return;
        }
        // What is the command's own comes with its job.
        let access = Access { view: access.view, network: access.network, ..Access::default() };
        let keep = keep(Arc::downgrade(self), launcher.without_spares(), kind.clone(), access);
        let keeper = AbortOnDropHandle::new(tokio::spawn(keep));
        seats.insert(kind, Seat { state: State::Filling, _keeper: keeper });
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<Kind, Seat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<Waiting> {
        match std::mem::replace(self, Self::Taken) {
            Self::Filled(waiting) => Some(*waiting),
            Self::Filling => {
                *self = Self::Filling;
                None
            }
            Self::Taken => None,
        }
    }
}

async fn keep(spares: Weak<Spares>, launcher: Launcher, kind: Kind, access: Access) {
    // Why there is none is said when the next command is started.
    if let Ok(waiting) = launcher.start(&access, Instant::now() + launcher.start_time).await {
        let Some(spares) = spares.upgrade() else { return };
        if let Some(seat) = spares.seats().get_mut(&kind) {
            seat.state = State::Filled(Box::new(waiting));
        }
        drop(spares);
        sleep(KEPT).await;
    }
    if let Some(spares) = spares.upgrade() {
        spares.seats().remove(&kind);
    }
}

/// What is not isolated has little that takes long.
fn kind(launcher: &Launcher, access: &Access) -> Option<Kind> {
    access.view.isolates().then(|| (access.view, launcher.sandbox.layers_for(access)))
}
