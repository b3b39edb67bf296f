//! A run in a few lines, for lists: of one that is driven here as it is now, of one that has ended as it was kept, or
//! as its log has it.

use domain::{EventKind, Family, Outcome, Timestamp};
use prost::Message as _;
use store::{Entry, State as Stored, Store};
use wire::agent::{RunInfo, RunState};

use super::{Found, Progress, Runs, recover::history};

impl Runs {
    /// A run as others see it. What was not kept of one that has ended is made of its log again.
    pub(crate) async fn summary(&self, found: &Found) -> Result<RunInfo, store::Error> {
        let entry = match found {
            Found::Here(run) => return Ok(here(run)),
            Found::Stored(entry) => entry,
        };
        let is_lost = entry.meta.details.is_empty() && matches!(entry.state, Stored::Ended(_));
        if !is_lost {
            // What cannot be read says nothing.
            return Ok(stored(entry, RunInfo::decode(entry.meta.details.as_slice()).unwrap_or_default()));
        }
        let made = made_again(&*self.log, entry).await?;
        self.log.describe(&entry.log, entry.meta.title.clone(), made.encode_to_vec()).await?;
        Ok(stored(entry, made))
    }
}

/// What is kept of a run with its log.
pub(super) fn kept(run: &Progress) -> Vec<u8> {
    RunInfo { readers: 0, ..here(run) }.encode_to_vec()
}

fn here(run: &Progress) -> RunInfo {
    let now = run.state();
    RunInfo {
        run_id: run.id.as_str().to_owned(),
        state: state(now.outcome).into(),
        question: run.question.clone(),
        model: run.model.clone(),
        started_at: Some(wire::time(run.started_at)),
        ended_at: now.ended_at.map(wire::time),
        last_position: now.position,
        steps: now.steps,
        tool_calls: now.tool_calls,
        totals: Some(now.totals.into()),
        readers: now.readers,
    }
}

/// What was to be kept of a run, as its log has it.
async fn made_again(store: &dyn Store, entry: &Entry) -> Result<RunInfo, store::Error> {
    let events = history(store, &entry.log).await?;
    let Some(EventKind::RunStarted(started)) = events.first().map(|event| &event.kind) else {
        return Ok(RunInfo::default());
    };
    let family = Family::fold(started.setup.limits, events.iter().map(AsRef::as_ref));
    let run = family.main();
    Ok(RunInfo {
        model: started.model.clone(),
        ended_at: events.last().map(|event| wire::time(event.time)),
        steps: run.steps(),
        tool_calls: run.tool_calls(),
        totals: Some(run.totals_of_all().into()),
        ..RunInfo::default()
    })
}

fn stored(entry: &Entry, kept: RunInfo) -> RunInfo {
    let ended = |at: Timestamp| Some(wire::time(at));
    let (state, ended_at) = match entry.state {
        Stored::Empty | Stored::Running => (RunState::Running, None),
        Stored::Ended(outcome) => (state(Some(outcome)), ended(entry.updated)),
    };
    RunInfo {
        run_id: entry.log.as_str().to_owned(),
        state: state.into(),
        question: entry.meta.title.clone(),
        started_at: Some(wire::time(entry.created)),
        ended_at: kept.ended_at.or(ended_at),
        last_position: entry.position,
        ..kept
    }
}

fn state(outcome: Option<Outcome>) -> RunState {
    match outcome {
        None => RunState::Running,
        Some(Outcome::Finished) => RunState::Finished,
        Some(Outcome::Failed) => RunState::Failed,
        Some(Outcome::Cancelled) => RunState::Cancelled,
        Some(Outcome::Suspended) => RunState::Suspended,
    }
}
