//! What goes on for one agent. Dropping it ends all of it.

use std::collections::HashMap;

use domain::CallId;
use tokio::{sync::oneshot, time::Instant};
use tokio_util::task::AbortOnDropHandle;

#[derive(Debug, Default)]
pub(super) struct Work {
    /// The model is asked.
    pub(super) asking: Option<AbortOnDropHandle<()>>,
    /// Calls are judged.
    pub(super) planning: Option<AbortOnDropHandle<()>>,
    /// Calls run, or wait for the client.
    pub(super) using: HashMap<CallId, AbortOnDropHandle<()>>,
    /// Questions of code are answered, by the call that the code is.
    pub(super) answering: HashMap<CallId, Vec<AbortOnDropHandle<()>>>,
    /// Calls that go to an executor once the log says so.
    pub(super) placing: HashMap<CallId, oneshot::Sender<()>>,
    pub(super) timer: Option<Instant>,
}
