//! One executor: how to speak to it, what it does for this agent now, and whether it works.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use domain::ToolProfile;
use runtime::clock;
use tokio::time::Instant;
use tonic::{ConnectError, Status, metadata::MetadataValue};
use wire::{
    Transport,
    executor::{ListToolsResponse, ToolsetStatus, tool_executor_client::ToolExecutorClient},
};

pub(crate) type Client = ToolExecutorClient<Transport>;

/// Bytes of one message: an executor that dialled in must not fill this agent's memory.
const LARGEST: usize = 64 << 20;
/// The label of an executor for each of its toolsets that works, beside those that its operator gives it.
const TOOLSET: &str = "toolset";

/// In the metadata of a status: the request never reached an executor.
const UNSENT: &str = "sleuth-unsent";
/// In the metadata of a status: the request was on its way when the way to the executor broke.
const BROKE: &str = "sleuth-broke";
/// How long an executor that failed is left alone; doubled with each failure, up to the longest.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// One executor.
#[derive(Debug)]
pub(crate) struct Member {
    name: String,
    transport: Transport,
    way: Way,
    /// Whether another one is to take its place.
    leaves: AtomicBool,
    calls: AtomicUsize,
    state: Mutex<State>,
}

/// How an executor is reached.
#[derive(Debug)]
enum Way {
    /// This agent dials it.
    Dialled,
    /// It has dialled in here.
    Linked { since: u64 },
    /// It has dialled in at another agent, which passes calls on.
    Through { agent: String, since: u64 },
}

/// What is known of an executor.
#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// It failed, and is to be tried again then.
    out: Option<Instant>,
    instance: String,
    /// What it said last of itself, for each profile that was asked about.
    lists: HashMap<ToolProfile, Arc<ListToolsResponse>>,
}

/// A call that an executor does for this agent, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Member>);

impl Member {
    /// An executor of which nothing is known but how to reach it.
    pub(crate) fn new(name: String, transport: Transport) -> Arc<Self> {
        Arc::new(Self::with(name, transport, Way::Dialled))
    }

    /// One that has dialled in: when its link is lost, another one comes under its name.
    pub(crate) fn dialled_in(name: String, transport: Transport) -> Arc<Self> {
        let since = u64::try_from(clock::unix_nanos()).unwrap_or_default();
        Arc::new(Self::with(name, transport, Way::Linked { since }))
    }

    /// One that has dialled in at another agent.
    pub(crate) fn through(name: String, transport: Transport, agent: &str, since: u64) -> Arc<Self> {
        Arc::new(Self::with(name, transport, Way::Through { agent: agent.to_owned(), since }))
    }

    fn with(name: String, transport: Transport, way: Way) -> Self {
        let (leaves, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { name, transport, way, leaves, calls, state: Mutex::default() }
    }

    /// Whether it has dialled in, here or elsewhere.
    pub(crate) fn dials_in(&self) -> bool {
        !matches!(self.way, Way::Dialled)
    }

    /// When it dialled in here; `None` if it did not.
    pub(crate) fn linked_since(&self) -> Option<u64> {
        match self.way {
            Way::Linked { since } => Some(since),
            Way::Dialled | Way::Through { .. } => None,
        }
    }

    /// The agent that passes its calls on, if one does.
    pub(crate) fn agent(&self) -> Option<&str> {
        match &self.way {
            Way::Through { agent, .. } => Some(agent),
            Way::Dialled | Way::Linked { .. } => None,
        }
    }

    /// Whether it is reached through this link of another agent.
    pub(crate) fn is_link(&self, of: &str, link: u64) -> bool {
        matches!(&self.way, Way::Through { agent, since } if agent == of && *since == link)
    }

    /// It is to come again, here or elsewhere.
    pub(crate) fn leave(&self) {
        self.leaves.store(true, Relaxed);
    }

    /// Whether it is to come again.
    pub(crate) fn leaves(&self) -> bool {
        self.leaves.load(Relaxed)
    }

    /// The way to it.
    pub(crate) fn transport(&self) -> Transport {
        self.transport.clone()
    }

    /// Its place: an address, or the name under which it registered.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn client(&self) -> Client {
        ToolExecutorClient::new(self.transport()).max_decoding_message_size(LARGEST)
    }

    /// Counts a call until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.calls.fetch_add(1, Relaxed);
        Busy(Arc::clone(self))
    }

    /// Calls that it does for this agent.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Whether it may be given work.
    pub(crate) fn works(&self) -> bool {
        self.state().out.is_none()
    }

    /// Whether it failed and is to be tried again now. Whoever is told so is the one to try.
    pub(super) fn take_due(&self, now: Instant) -> bool {
        let mut state = self.state();
        let due = state.out.is_some_and(|at| at <= now);
        if due {
            state.out = Some(now + LONGEST_PAUSE);
        }
        due
    }

    /// It could not be reached, or was lost: others take its work until it answers again.
    pub(crate) fn failed(&self, status: &Status) {
        let mut state = self.state();
        let pause = PAUSE.saturating_mul(1 << state.failures.min(6)).min(LONGEST_PAUSE);
        state.failures = state.failures.saturating_add(1);
        if state.out.replace(Instant::now() + pause.mul_f64(0.5 + fastrand::f64() / 2.0)).is_none() {
            tracing::warn!(executor = self.name, error = status.message(), "an executor does not answer");
        }
    }

    /// It answered.
    pub(crate) fn answered(&self) {
        let mut state = self.state();
        state.failures = 0;
        if state.out.take().is_some() {
            tracing::info!(executor = self.name, "an executor answers again");
        }
    }

    /// It said who it is, and what it has for a profile.
    pub(crate) fn told(&self, profile: ToolProfile, list: ListToolsResponse) {
        self.answered();
        self.is(&list.instance);
        self.state().lists.insert(profile, Arc::new(list));
    }

    /// Somebody said who it is.
    pub(crate) fn is(&self, instance: &str) {
        let mut state = self.state();
        if state.instance != instance {
            tracing::info!(executor = self.name, instance, "an executor answers");
        }
        instance.clone_into(&mut state.instance);
    }

    /// What it said last that it has for a profile.
    pub(crate) fn list(&self, profile: ToolProfile) -> Option<Arc<ListToolsResponse>> {
        self.state().lists.get(&profile).cloned()
    }

    /// Whether it has a tool, as far as is known.
    pub(super) fn has(&self, profile: ToolProfile, tool: &str) -> Option<bool> {
        self.list(profile).map(|list| list.tools.iter().any(|own| own.name == tool))
    }

    /// Whether it is known to have all of these labels.
    pub(super) fn is_labelled(&self, labels: &[(String, String)]) -> bool {
        let state = self.state();
        let has = |(key, value): &(String, String)| {
            state.lists.values().any(|list| {
                let works = |status| status == ToolsetStatus::Enabled;
                list.labels.get(key) == Some(value)
                    || key == TOOLSET
                        && list.toolsets.iter().any(|own| own.name == *value && works(own.status()))
            })
        };
        labels.iter().all(has)
    }

    /// The process that answers there, as far as is known.
    pub(crate) fn instance(&self) -> String {
        self.state().instance.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Busy {
    type Target = Arc<Member>;

    fn deref(&self) -> &Arc<Member> {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Relaxed);
    }
}

/// Whether a failure means that the executor, or the way to it, is gone.
pub(crate) fn is_lost(status: &Status) -> bool {
    use tonic::Code::{Cancelled, DeadlineExceeded, Internal, Unavailable, Unknown};
    matches!(status.code(), Unavailable | DeadlineExceeded)
        // What a transport says has a cause; what an executor says has none.
        || matches!(status.code(), Unknown | Cancelled | Internal) && std::error::Error::source(status).is_some()
}

/// That a request never reached an executor, for whoever could try elsewhere.
pub(crate) fn unsent(why: &str) -> Status {
    marked(UNSENT, why)
}

/// The failure of a way to an executor, for whoever is told of it elsewhere, where it has no cause any more.
pub(crate) fn passed_on(failure: &Status) -> Status {
    marked(if is_unsent(failure) { UNSENT } else { BROKE }, failure.message())
}

fn marked(mark: &'static str, why: &str) -> Status {
    let mut status = Status::unavailable(why);
    status.metadata_mut().insert(mark, MetadataValue::from_static("true"));
    status
}

/// Whether an executor may have taken a request all the same: it did not answer, and the request was sent.
pub(crate) fn is_doubtful(status: &Status) -> bool {
    // What an executor says has no cause, and then it says that it did not take it.
    let broke = status.metadata().contains_key(BROKE) || std::error::Error::source(status).is_some();
    broke && !is_unsent(status) || status.code() == tonic::Code::DeadlineExceeded
}

/// Whether a request certainly never reached an executor.
pub(crate) fn is_unsent(status: &Status) -> bool {
    if status.metadata().contains_key(UNSENT) {
        return true;
    }
    let first = std::error::Error::source(status);
    std::iter::successors(first, |error| error.source()).any(<dyn std::error::Error>::is::<ConnectError>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_on_says_whether_anything_can_have_happened() {
        let refused = Status::from_error(Box::new(ConnectError("refused".into())));
        let cut = Status::from_error(Box::new(std::io::Error::other("cut")));
        for (failure, unsent) in [(refused, true), (cut, false)] {
            let passed = passed_on(&failure);
            assert_eq!((is_unsent(&failure), is_unsent(&passed)), (unsent, unsent), "{failure:?}");
            assert_eq!((is_doubtful(&failure), is_doubtful(&passed)), (!unsent, !unsent), "{failure:?}");
            assert!(is_lost(&passed));
        }
        assert!(!is_doubtful(&Status::unavailable("it is shutting down")));
    }
}
