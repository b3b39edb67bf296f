//! A run in a few lines, for lists: of one that is driven here as it is now, of one that has ended as it was kept.

use domain::{Outcome, Timestamp};
use prost::Message as _;
use store::{Entry, State as Stored};
use wire::agent::{RunInfo, RunState};

use super::{Found, Progress};

/// A run as others see it.
pub(crate) fn of(found: &Found) -> RunInfo {
    match found {
        Found::Here(run) => here(run),
        Found::Stored(entry) => stored(entry),
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

fn stored(entry: &Entry) -> RunInfo {
    let ended = |at: Timestamp| Some(wire::time(at));
    let (state, ended_at) = match entry.state {
        Stored::Empty | Stored::Running => (RunState::Running, None),
        Stored::Ended(outcome) => (state(Some(outcome)), ended(entry.updated)),
    };
    // What cannot be read says nothing.
    let kept = RunInfo::decode(entry.meta.details.as_slice()).unwrap_or_default();
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
