//! Words about calls that wait in a run, from whoever may say them: the first one counts.

use std::num::NonZeroUsize;

use domain::{CallId, EventKind, Input, LogId, Permission, RunId, Settlement};
use prost::Message as _;
use store::{Post, State};
use wire::agent::{DecideOutcome, DecideRequest, decide_request};

use super::{Found, Runs, mail};

/// Events that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Why a word about a call is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSettled {
    #[error("the run has no call {0} that was to be decided about")]
    Unknown(CallId),
    #[error("the call {0} does not wait any more")]
    Over(CallId),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Runs {
    /// Settles a call, wherever its run is driven.
    pub(crate) async fn settle(
        &self,
        found: Found,
        word: DecideRequest,
    ) -> Result<DecideOutcome, NotSettled> {
        let (log, goes_on) = match found {
            Found::Here(run) => (LogId::from(&run.id), run.outcome().is_none()),
            Found::Stored(entry) => (entry.log.clone(), entry.state == State::Running),
        };
        let call = CallId::new(&word.call_id);
        let waits = self.waits(&log, &call).await?;
        let key = format!("{}{call}", mail::SETTLED);
        let payload = DecideRequest { caller: None, ..word }.encode_to_vec();
        if waits && goes_on {
            return Ok(match self.log.post(&log, &key, payload.clone()).await? {
                Post::First => DecideOutcome::Counts,
                Post::Earlier(first) if first == payload => DecideOutcome::Repeated,
                Post::Earlier(_) => DecideOutcome::Late,
            });
        }
        Err(NotSettled::Over(call))
    }

    /// Whether a run looks at no other clusters than these, if there are any.
    pub(crate) async fn stays_within(&self, found: &Found, only: &[String]) -> Result<bool, store::Error> {
        if only.is_empty() {
            return Ok(true);
        }
        let log = match found {
            Found::Here(run) => LogId::from(&run.id),
            Found::Stored(entry) => entry.log.clone(),
        };
        let first = self.log.read(&log, 0, NonZeroUsize::MIN).await?;
        let Some(EventKind::RunStarted(started)) = first.first().map(|event| &event.kind) else {
            return Ok(false);
        };
        let mut looks = match (started.setup.clusters.as_slice(), started.setup.cluster.as_str()) {
            ([], "") => vec![self.config.own_cluster()],
            ([], one) => vec![one],
            (several, _) => several.iter().map(String::as_str).collect(),
        };
        looks.retain(|cluster| !only.iter().any(|name| name == cluster));
        Ok(looks.is_empty())
    }

    /// Whether the log says that a call was asked about, and not how it went on.
    async fn waits(&self, log: &LogId, call: &CallId) -> Result<bool, NotSettled> {
        let (mut after, mut asked) = (0, false);
        loop {
            let page = self.log.read(log, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for event in &page {
                match &event.kind {
                    EventKind::ClientToolRequested { call: waiting }
                    | EventKind::ApprovalRequested { call: waiting, .. }
                        if waiting == call =>
                    {
                        asked = true;
                    }
                    EventKind::ToolFinished { call: ended, .. } if asked && ended == call => {
                        return Ok(false);
                    }
                    _ => {}
                }
            }
        }
        if asked { Ok(true) } else { Err(NotSettled::Unknown(call.clone())) }
    }
}

/// What an entry of the inbox says.
pub(super) fn input(call: CallId, payload: &[u8]) -> Option<Input> {
    let word = DecideRequest::decode(payload).ok()?;
    let settlement = match word.settlement? {
        decide_request::Settlement::Grant(grant) => {
            let (run, standing) = (RunId::new(word.run_id), word.standing_grants);
            Settlement::Allowed(Permission { run, grant, standing, always: word.always })
        }
        decide_request::Settlement::Denial(why) => Settlement::Denied(why),
        decide_request::Settlement::Result(data) => Settlement::Done(data),
    };
    Some(Input::Settled { call, settlement })
}
