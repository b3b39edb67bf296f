//! The entries of a session's log, and how a session stands by the last of them.

use std::{num::NonZeroUsize, sync::Arc};

use domain::{AgentId, Event, EventKind, LogId, RunId, SessionRecord, Timestamp};
use prost::Message as _;
use store::Store;
use wire::session::{Phase, Record, Rest, ToolApprovalRequested, ToolCall, event::Data};

/// Entries that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(512).unwrap();

/// An entry of a session's log.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub sequence: u64,
    pub time: Timestamp,
    pub record: Record,
}

impl Entry {
    pub(super) fn data(&self) -> Option<&Data> {
        self.record.event.as_ref()?.data.as_ref()
    }
}

/// The entry that an event of a log is.
pub(super) fn decode(event: &Event) -> Option<Entry> {
    let EventKind::SessionRecord(SessionRecord { bytes, .. }) = &event.kind else { return None };
    // The store checks what it gives back.
    let record = Record::decode(bytes.as_slice()).ok()?;
    Some(Entry { sequence: event.position, time: event.time, record })
}

/// The event of a log that an entry is.
pub(super) fn encode(log: &LogId, entry: &Entry) -> Event {
    let busy = entry.record.phase() != Phase::Idle;
    Event {
        run: RunId::new(log.as_str()),
        position: entry.sequence,
        time: entry.time,
        agent: AgentId::main(),
        parent: None,
        kind: EventKind::SessionRecord(SessionRecord { bytes: entry.record.encode_to_vec(), busy }),
    }
}

/// Whether an event is a piece of what a later one has as a whole.
pub(super) fn is_delta(data: &Data) -> bool {
    matches!(data, Data::OutputMessageDelta(_) | Data::ReasonThinkingDelta(_) | Data::ToolOutputDelta(_))
}

/// Entries after a position: at most a page of them.
pub(super) async fn page(store: &dyn Store, log: &LogId, after: u64) -> Result<Vec<Entry>, store::Error> {
    Ok(entries(&store.read(log, after, PAGE).await?))
}

/// Entries after a position and up to another one.
pub(super) async fn range(
    store: &dyn Store,
    log: &LogId,
    after: u64,
    last: u64,
    mut each: impl FnMut(Entry),
) -> Result<(), store::Error> {
    let mut after = after;
    while after < last {
        let page = page(store, log, after).await?;
        let Some(newest) = page.last().map(|entry| entry.sequence) else { break };
        after = newest;
        page.into_iter().filter(|entry| entry.sequence <= last).for_each(&mut each);
    }
    Ok(())
}

fn entries(events: &[Arc<Event>]) -> Vec<Entry> {
    events.iter().filter_map(|event| decode(event)).collect()
}

/// How a session stands.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Its newest entry.
    pub position: u64,
    /// Events up to it that are no deltas.
    pub lasting: u64,
    pub phase: Phase,
    /// What the turns before left.
    pub rest: Rest,
    /// The entries of the turn that goes on, without deltas but for the newest entry.
    pub turn: Vec<Entry>,
}

impl Standing {
    /// How a session stands whose newest entry is at a position.
    pub(super) async fn of(store: &dyn Store, log: &LogId, position: u64) -> Result<Self, store::Error> {
        let Some(newest) = at(store, log, position).await? else {
            return Ok(Self { position, phase: Phase::Idle, ..Self::default() });
        };
        let (phase, lasting) = (newest.record.phase(), newest.record.lasting);
        if phase == Phase::Idle {
            let rest = newest.record.rest.unwrap_or_default();
            return Ok(Self { position, lasting, phase, rest, turn: Vec::new() });
        }
        let before = newest.record.turn_began.saturating_sub(1);
        let rest = at(store, log, before).await?.and_then(|entry| entry.record.rest).unwrap_or_default();
        let mut turn = Vec::new();
        range(store, log, before, position, |entry| {
            if entry.sequence == position || !entry.data().is_some_and(is_delta) {
                turn.push(entry);
            }
        })
        .await?;
        Ok(Self { position, lasting, phase, rest, turn })
    }

    /// The turn that goes on.
    pub(super) fn turn_id(&self) -> Option<&str> {
        self.turn.iter().find_map(|entry| match entry.data() {
            Some(Data::TurnStarted(started)) => Some(started.turn_id.as_str()),
            _ => None,
        })
    }

    /// The calls that wait for the client, and those that wait for a person.
    pub(super) fn pending(&self) -> (Vec<ToolCall>, Vec<ToolApprovalRequested>) {
        let (mut calls, mut approvals) = (Vec::new(), Vec::<ToolApprovalRequested>::new());
        for entry in &self.turn {
            match entry.data() {
                Some(Data::ToolCallRequested(requested)) => calls.clone_from(&requested.tool_calls),
                Some(Data::ToolApprovalRequested(requested)) => approvals.push(requested.clone()),
                Some(Data::ToolCompleted(completed)) => {
                    let id = &completed.tool_call_id;
                    calls.retain(|call| call.id != *id);
                    approvals.retain(|asked| asked.tool_call.as_ref().is_none_or(|call| call.id != *id));
                }
                // The model was asked again: nothing waits any more.
                Some(Data::ReasonStarted(_)) => {
                    calls.clear();
                    approvals.clear();
                }
                _ => {}
            }
        }
        (calls, approvals)
    }
}

/// The entry at a position; `None` at none.
pub(super) async fn at(store: &dyn Store, log: &LogId, position: u64) -> Result<Option<Entry>, store::Error> {
    let Some(before) = position.checked_sub(1) else { return Ok(None) };
    Ok(entries(&store.read(log, before, NonZeroUsize::MIN).await?).pop())
}
