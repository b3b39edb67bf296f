//! The entries of a session's log, and how a session stands by the last of them.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    sync::Arc,
};

use domain::{AgentId, Event, EventKind, LogId, RunId, SessionRecord, Timestamp};
use prost::Message as _;
use store::Store;
use wire::session::{Phase, Record, Rest, ToolApprovalRequested, ToolCall, event::Data};

/// Entries that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// The same, backwards.
pub(super) const WINDOW: u64 = 128;
/// The first entries of a turn: among them is the one that says its name.
const BEGINNING: NonZeroUsize = NonZeroUsize::new(8).unwrap();

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
    while let Some(left) = last.checked_sub(after).and_then(NonZeroU64::new) {
        let most = NonZeroUsize::try_from(left).map_or(PAGE, |left| left.min(PAGE));
        let page = entries(&store.read(log, after, most).await?);
        let Some(newest) = page.last().map(|entry| entry.sequence) else { break };
        after = newest;
        page.into_iter().for_each(&mut each);
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
    /// The turn that goes on.
    turn: Option<GoingOn>,
}

/// A turn that goes on.
#[derive(Debug)]
struct GoingOn {
    id: String,
    /// The entry before its first one.
    before: u64,
}

/// The calls that wait for the client, and those that wait for a person.
pub(super) type Pending = (Vec<ToolCall>, Vec<ToolApprovalRequested>);

impl Standing {
    /// How a session stands whose newest entry is at a position.
    pub(super) async fn of(store: &dyn Store, log: &LogId, position: u64) -> Result<Self, store::Error> {
        let Some(newest) = at(store, log, position).await? else {
            return Ok(Self { position, phase: Phase::Idle, ..Self::default() });
        };
        let (phase, lasting) = (newest.record.phase(), newest.record.lasting);
        if phase == Phase::Idle {
            let rest = newest.record.rest.unwrap_or_default();
            return Ok(Self { position, lasting, phase, rest, turn: None });
        }
        let before = newest.record.turn_began.saturating_sub(1);
        let rest = at(store, log, before).await?.and_then(|entry| entry.record.rest).unwrap_or_default();
        let first = entries(&store.read(log, before, BEGINNING).await?);
        let id = first.iter().find_map(|entry| match entry.data() {
            Some(Data::TurnStarted(started)) => Some(started.turn_id.clone()),
            _ => None,
        });
        Ok(Self { position, lasting, phase, rest, turn: id.map(|id| GoingOn { id, before }) })
    }

    /// The turn that goes on.
    pub(super) fn turn_id(&self) -> Option<&str> {
        self.turn.as_ref().map(|turn| turn.id.as_str())
    }

    /// The entries of the turn that goes on, without deltas but for the newest entry.
    pub(super) async fn turn(&self, store: &dyn Store, log: &LogId) -> Result<Vec<Entry>, store::Error> {
        let mut turn = Vec::new();
        let Some(GoingOn { before, .. }) = self.turn else { return Ok(turn) };
        range(store, log, before, self.position, |entry| {
            if entry.sequence == self.position || !entry.data().is_some_and(is_delta) {
                turn.push(entry);
            }
        })
        .await?;
        Ok(turn)
    }

    /// The calls that wait: what was asked for since the model was last asked.
    pub(super) async fn pending(&self, store: &dyn Store, log: &LogId) -> Result<Pending, store::Error> {
        let Some(GoingOn { before, .. }) = self.turn else { return Ok(Pending::default()) };
        let (mut since, mut end, mut asked) = (Vec::new(), self.position, None);
        while end > before && asked.is_none() {
            let start = end.saturating_sub(WINDOW).max(before);
            let mut window = Vec::new();
            range(store, log, start, end, |entry| {
                if !entry.data().is_some_and(is_delta) {
                    window.push(entry);
                }
            })
            .await?;
            asked = window.iter().rposition(|entry| matches!(entry.data(), Some(Data::ReasonStarted(_))));
            window.drain(..asked.unwrap_or_default());
            window.append(&mut since);
            (since, end) = (window, start);
        }
        Ok(waiting(&since))
    }
}

/// What waits after these entries.
fn waiting(entries: &[Entry]) -> Pending {
    let (mut calls, mut approvals) = Pending::default();
    for entry in entries {
        match entry.data() {
            Some(Data::ToolCallRequested(requested)) => calls.clone_from(&requested.tool_calls),
            Some(Data::ToolApprovalRequested(requested)) => approvals.push(requested.clone()),
            Some(Data::ToolCompleted(completed)) => {
                let id = &completed.tool_call_id;
                calls.retain(|call| call.id != *id);
                approvals.retain(|asked| asked.tool_call.as_ref().is_none_or(|call| call.id != *id));
            }
            _ => {}
        }
    }
    (calls, approvals)
}

/// The entry at a position; `None` at none.
pub(super) async fn at(store: &dyn Store, log: &LogId, position: u64) -> Result<Option<Entry>, store::Error> {
    let Some(before) = position.checked_sub(1) else { return Ok(None) };
    Ok(entries(&store.read(log, before, NonZeroUsize::MIN).await?).pop())
}

#[cfg(test)]
mod tests {
    use store::{EventLog as _, Kind, Memory, Meta, NewLog, OwnerId};
    use wire::session::{
        OutputMessageDelta, ReasonStarted, ToolApprovalRequested, ToolCallRequested, ToolCompleted,
        TurnStarted,
    };

    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.to_owned(), ..ToolCall::default() }
    }

    fn requested(ids: &[&str]) -> Data {
        let tool_calls = ids.iter().map(|id| call(id)).collect();
        Data::ToolCallRequested(ToolCallRequested { tool_calls, ..ToolCallRequested::default() })
    }

    /// A log of a session whose only turn has these events.
    async fn kept(events: Vec<Data>) -> (Memory, LogId) {
        let (store, id) = (Memory::default(), LogId::new("session"));
        let meta =
            Meta { account: "a".to_owned(), kind: Kind::Session, title: String::new(), details: Vec::new() };
        let events = (1..).zip(events).map(|(sequence, data)| {
            let event = Some(wire::session::Event { data: Some(data), ..wire::session::Event::default() });
            let phase = Phase::Waiting.into();
            let record = Record { event, phase, turn_began: 1, ..Record::default() };
            encode(&id, &Entry { sequence, time: Timestamp::default(), record })
        });
        let (owner, events) = (OwnerId::new("nobody"), events.collect());
        store.create(NewLog { id: id.clone(), owner, meta, idempotency: None, events }).await.unwrap();
        (store, id)
    }

    #[tokio::test]
    async fn what_waits_is_what_was_asked_for_since_the_model_was_asked() {
        let deltas = || vec![Data::OutputMessageDelta(OutputMessageDelta::default()); 300];
        let started = TurnStarted { turn_id: "turn_1".to_owned(), ..TurnStarted::default() };
        let asked = || Data::ReasonStarted(ReasonStarted::default());
        let approval = ToolApprovalRequested { tool_call: Some(call("a")), ..Default::default() };
        let completed = ToolCompleted { tool_call_id: "c".to_owned(), ..ToolCompleted::default() };
        let events = [
            vec![Data::TurnStarted(started), asked(), requested(&["old"])],
            deltas(),
            vec![asked()],
            deltas(),
            vec![Data::ToolApprovalRequested(approval.clone()), requested(&["b", "c"])],
            deltas(),
            vec![Data::ToolCompleted(completed)],
        ];
        let events = events.concat();
        let length = events.len() as u64;
        let (store, log) = kept(events).await;
        let standing = Standing::of(&store, &log, length).await.unwrap();
        assert_eq!((standing.turn_id(), standing.phase), (Some("turn_1"), Phase::Waiting));
        assert_eq!(standing.pending(&store, &log).await.unwrap(), (vec![call("b")], vec![approval]));
        assert_eq!(standing.turn(&store, &log).await.unwrap().len(), 7);
        let earlier = Standing::of(&store, &log, 3).await.unwrap();
        assert_eq!(earlier.pending(&store, &log).await.unwrap().0, [call("old")]);
    }
}
