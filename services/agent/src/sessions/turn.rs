//! A turn that goes on: what it was asked, which runs it has had, what it waits for.

use std::{collections::HashSet, sync::Arc, time::Duration};

use domain::{AgentId, CallId, Event, EventKind, LogId, Permission, Run, RunId, Timestamp, ToolProfile};
use futures_util::stream::BoxStream;
use store::Store;
use tokio::time::Instant;
use wire::session::{Message, Rest, ToolDecision, ToolResult, event::Data, tool_decision};

use super::{
    failure::Disclosure,
    project::{Ending, Projection, Providers, Settlement, TurnIds, millis},
    record::Entry,
    words,
};
use crate::{
    runs::{Brought, Decision, Reading},
    tools::Home,
};

/// What the model reads of a call whose result did not come.
pub(super) const TOO_LATE: &str = "Not run: the client did not bring a result in time.";
/// What it reads of a call that nobody waits for any more.
pub(super) const INTERRUPTED: &str = "Not run: the user said something new before this call was settled.";
/// What it reads of a call that was stopped.
pub(super) const STOPPED: &str = "Stopped: the turn was cancelled.";

/// Events of a run, in chunks that were there together.
pub(super) type RunEvents = BoxStream<'static, Result<Vec<Arc<Event>>, store::Error>>;

/// A run that the turn follows.
pub(super) struct Following {
    pub run: RunId,
    pub events: RunEvents,
    /// When the run counts as lost.
    pub until: Instant,
    /// Keeps the run read.
    pub _reading: Reading,
}

/// What the turn does now.
pub(super) enum Doing {
    /// It has to begin a run.
    Beginning,
    Following(Box<Following>),
    /// It waits for the client until a deadline.
    Waiting(Instant),
}

/// What a person or program said in the turn.
#[derive(Clone)]
pub(super) struct Said {
    pub sequence: u64,
    pub message: Message,
    /// Who said it; empty if nobody was known.
    pub principal: String,
}

/// A turn.
pub(super) struct Turn {
    pub projection: Projection,
    pub doing: Doing,
    pub began_at: u64,
    pub began: Timestamp,
    /// What was said, oldest first. The first message began the turn.
    pub said: Vec<Said>,
    /// The newest of these that a run was given, by its sequence.
    pub given: u64,
    /// The newest that the run was told of while it went on, and the newest of these that the log of the run has.
    pub told: u64,
    queued: u64,
    /// Runs that were begun.
    pub runs: u32,
    /// The newest run, which has the conversation; of an earlier turn if this one has none.
    pub run: Option<RunId>,
    /// What the client brought for the calls of the newest run.
    pub brought: Brought,
    /// Entries of the inbox that this turn has dealt with.
    pub causes: HashSet<String>,
    /// The event that began the message that is said, and the one that began the thinking before it.
    pub message_began: u64,
    pub thinking_began: u64,
    /// When the client or a person was last asked for something.
    asked: Timestamp,
}

impl Turn {
    /// A turn that a message begins, which is its first event.
    pub(super) fn new(
        ids: TurnIds,
        first: Said,
        began: Timestamp,
        run: Option<RunId>,
        (providers, most): (Providers, Disclosure),
    ) -> Self {
        let asked = first.message.controls.as_ref().and_then(|controls| controls.error_disclosure.as_deref());
        Self {
            projection: Projection::new(ids, most.narrowed(asked), providers),
            doing: Doing::Beginning,
            began_at: first.sequence,
            began,
            said: vec![first],
            given: 0,
            told: 0,
            queued: 0,
            runs: 0,
            run,
            brought: Brought::default(),
            causes: HashSet::new(),
            message_began: 0,
            thinking_began: 0,
            asked: began,
        }
    }

    /// The turn that goes on in a session that another process left, and how far its newest run was seen.
    pub(super) async fn taken_over(
        store: &dyn Store,
        (rest, entries): (&Rest, &[Entry]),
        ids: TurnIds,
        told: (Providers, Disclosure),
    ) -> Result<Option<(Self, u64)>, store::Error> {
        let Some(first) = entries.first() else { return Ok(None) };
        let Some(said) = said(first) else { return Ok(None) };
        let run = (!rest.run_id.is_empty()).then(|| RunId::new(&*rest.run_id));
        let mut turn = Self::new(ids, said, first.time, run, told);
        turn.said.clear();
        let mut seen = 0;
        for entry in entries {
            seen = turn.replay(store, entry, seen).await?;
        }
        Ok(Some((turn, seen)))
    }

    /// Takes an entry of the log into account, and the part of a run that it was made of.
    async fn replay(&mut self, store: &dyn Store, entry: &Entry, seen: u64) -> Result<u64, store::Error> {
        let record = &entry.record;
        if !record.cause.is_empty() {
            self.causes.insert(record.cause.clone());
        }
        if !record.run_id.is_empty() {
            let run = RunId::new(&*record.run_id);
            let seen = if self.runs > 0 && self.run.as_ref() == Some(&run) { seen } else { 0 };
            if seen == 0 {
                self.begins(run.clone());
            }
            each(store, &run, seen, record.run_position, |event| {
                self.hears(event);
                self.projection.apply(event);
            })
            .await?;
            self.note(entry);
            return Ok(record.run_position.max(seen));
        }
        match entry.data() {
            Some(Data::InputMessage(_)) => self.said.extend(said(entry)),
            Some(Data::ToolCompleted(completed)) => {
                let id = CallId::new(&*completed.tool_call_id);
                let why = completed.error.clone().unwrap_or_default();
                self.projection.settle(entry.time, &id, &Settlement::without("error", &why));
                self.brought.decisions.insert(id, Decision::Denied(why));
            }
            _ => {}
        }
        Ok(seen)
    }

    /// The event that began what a delta is a piece of.
    pub(super) fn began(&self, delta: &Data) -> u64 {
        match delta {
            Data::OutputMessageDelta(_) => self.message_began,
            Data::ReasonThinkingDelta(_) => self.thinking_began,
            _ => 0,
        }
    }

    /// What is left of a time that began when the client or a person was asked.
    pub(super) fn left_of(&self, time: Duration, now: Timestamp) -> Duration {
        time.saturating_sub(Duration::from_millis(millis(self.asked, now)))
    }

    /// Remembers where messages begin, and when somebody was asked.
    pub(super) fn note(&mut self, entry: &Entry) {
        match entry.data() {
            Some(Data::OutputMessageStarted(_)) => self.message_began = entry.sequence,
            Some(Data::ReasonThinkingStarted(_)) => self.thinking_began = entry.sequence,
            Some(Data::ToolCallRequested(_) | Data::ToolApprovalRequested(_)) => self.asked = entry.time,
            _ => {}
        }
    }

    /// Notes what of the things that were said the run has asked its model with.
    pub(super) fn hears(&mut self, event: &Event) {
        match &event.kind {
            _ if event.agent != AgentId::main() => {}
            EventKind::RunStarted(_) => self.given = given_to(event).unwrap_or(self.given),
            EventKind::Steered(steered) => self.queued = steered.key.parse().unwrap_or(self.queued),
            EventKind::ModelCalled(_) => self.given = self.given.max(self.queued),
            _ => {}
        }
    }

    /// A run begins.
    pub(super) fn begins(&mut self, run: RunId) {
        self.runs += 1;
        self.run = Some(run);
        (self.told, self.queued) = (0, 0);
        self.brought = Brought::default();
    }

    /// What was said and not yet given to a run.
    pub(super) fn unheard(&self) -> &[Said] {
        let heard = self.said.iter().take_while(|said| said.sequence <= self.given).count();
        &self.said[heard..]
    }

    /// What was said and the run knows nothing of.
    pub(super) fn untold(&self) -> &[Said] {
        let unheard = self.unheard();
        let told = unheard.iter().take_while(|said| said.sequence <= self.told).count();
        &unheard[told..]
    }

    /// What the next run is asked: what one asker said of it. What others said besides, it is told of.
    pub(super) fn asked(&self) -> &[Said] {
        let by_asker = self.unheard().chunk_by(|one, next| one.principal == next.principal);
        by_asker.into_iter().next().unwrap_or_default()
    }

    /// In whose words the next run works: the last ones that it is asked, or has been.
    pub(super) fn asker(&self) -> Option<&Said> {
        self.asked().last().or(self.said.last())
    }

    /// What the client may bring now, and has not.
    pub(super) fn waits_for(&self) -> (Vec<CallId>, Vec<CallId>) {
        let (calls, mut approvals) = self.projection.pending();
        approvals.retain(|id| !self.brought.decisions.contains_key(id));
        (calls, approvals)
    }

    /// A call of the client's has ended.
    pub(super) fn bring(&mut self, id: &CallId, result: &ToolResult) -> Settlement {
        if result.error.is_empty() {
            let text = plain(&result.result_json);
            self.brought.results.insert(id.clone(), text.clone());
            Settlement { status: "success", text, error: None, ran: true }
        } else {
            self.brought.decisions.insert(id.clone(), Decision::Denied(result.error.clone()));
            Settlement::without("error", &result.error)
        }
    }

    /// A person decided about a call; `None` if it is to run.
    pub(super) fn decide(&mut self, id: &CallId, decision: ToolDecision) -> Option<Settlement> {
        match decision.decision {
            Some(tool_decision::Decision::Grant(grant)) => {
                let run = self.run.clone()?;
                let standing = decision.standing_grants;
                let permission = Permission { run, grant, standing, always: false };
                self.brought.decisions.insert(id.clone(), Decision::Approved(permission));
                None
            }
            Some(tool_decision::Decision::Denial(why)) => Some(self.deny("error", id, &why)),
            None => Some(self.deny("error", id, STOPPED)),
        }
    }

    /// A call does not run.
    pub(super) fn deny(&mut self, status: &'static str, id: &CallId, why: &str) -> Settlement {
        self.brought.decisions.insert(id.clone(), Decision::Denied(why.to_owned()));
        Settlement::without(status, why)
    }

    /// How the newest run ended, if it has.
    pub(super) fn ending(&self) -> Option<&Ending> {
        self.projection.ending()
    }

    /// Whether it goes on after the end of its newest run.
    pub(super) fn goes_on(&self) -> bool {
        match self.ending() {
            Some(Ending::Suspended) => true,
            Some(Ending::Answered { .. }) => !self.unheard().is_empty(),
            Some(Ending::Failed(..) | Ending::Sealed(_) | Ending::Cancelled { .. }) | None => false,
        }
    }

    /// Milliseconds since the turn began.
    pub(super) fn age(&self, now: Timestamp) -> u64 {
        millis(self.began, now)
    }

    /// The text that the turn answers.
    pub(super) fn question(&self) -> Option<String> {
        self.said.first().map(|said| words::words(&said.message)).filter(|text| !text.is_empty())
    }
}

/// What a run leaves to the next one of its session.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub messages: Vec<domain::Message>,
    /// The executor process that has the session's files; empty if there is none.
    pub home: String,
}

impl Left {
    /// What this run has left.
    pub(super) async fn by(store: &dyn Store, run: &RunId) -> Result<Self, store::Error> {
        let mut folded = Run::new(domain::Limits::default());
        let (home, mut has_files) = (Home::default(), false);
        let look = |event: &Event| {
            fold(&mut folded, event);
            match &event.kind {
                EventKind::RunStarted(started) if started.call.is_none() => {
                    has_files = started.setup.profile == ToolProfile::Harness;
                    home.follow(&event.kind);
                }
                // Calls of other tools have nothing to do with files.
                kind if has_files => home.follow(kind),
                _ => {}
            }
        };
        each(store, run, 0, u64::MAX, look).await?;
        Ok(Self { messages: folded.messages().to_vec(), home: home.instance() })
    }
}

/// Whether a run had files.
pub(super) async fn had_files(store: &dyn Store, run: &RunId) -> Result<bool, store::Error> {
    let first = match store.read(&LogId::from(run), 0, std::num::NonZeroUsize::MIN).await {
        Err(store::Error::UnknownLog(_)) => return Ok(false),
        first => first?,
    };
    Ok(first.first().is_some_and(|event| {
        matches!(&event.kind, EventKind::RunStarted(started) if started.setup.profile == ToolProfile::Harness)
    }))
}

/// What was said, if an entry is that.
fn said(entry: &Entry) -> Option<Said> {
    let Some(Data::InputMessage(input)) = entry.data() else { return None };
    let (message, principal) = (input.message.clone().unwrap_or_default(), entry.record.principal.clone());
    Some(Said { sequence: entry.sequence, message, principal })
}

/// Takes an event of a run into account. What agents of the agent do is no part of its conversation.
pub(super) fn fold(run: &mut Run, event: &Event) {
    if event.agent == AgentId::main() {
        run.apply(&event.kind);
    }
}

/// Which of the things that were said a run was given, if an event tells.
pub(super) fn given_to(event: &Event) -> Option<u64> {
    match &event.kind {
        EventKind::RunStarted(started) => started.setup.keeper.rsplit(' ').next()?.parse().ok(),
        _ => None,
    }
}

/// Looks at the events of a run after a position and up to another one.
pub(super) async fn each(
    store: &dyn Store,
    run: &RunId,
    after: u64,
    last: u64,
    mut look: impl FnMut(&Event),
) -> Result<(), store::Error> {
    const PAGE: std::num::NonZeroUsize = std::num::NonZeroUsize::new(512).unwrap();
    let (log, mut after) = (LogId::from(run), after);
    while after < last {
        let page = store.read(&log, after, PAGE).await?;
        let Some(newest) = page.last().map(|event| event.position) else { break };
        after = newest;
        page.iter().filter(|event| event.position <= last).for_each(|event| look(event));
    }
    Ok(())
}

/// What a JSON value says: a text as it is, anything else as JSON.
fn plain(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

#[cfg(test)]
mod tests {
    use wire::session::{Record, ToolCallRequested};

    use super::*;

    #[test]
    fn what_is_waited_for_has_the_time_since_it_was_asked_for() {
        let second = |second: i64| Timestamp(second * 1_000_000_000);
        let ids = ["session", "turn", "message", "harness", "agent"].map(str::to_owned);
        let [session, turn, input_message, harness, agent] = ids;
        let ids = TurnIds { session, turn, input_message, harness, agent };
        let told = (Providers::default(), Disclosure::default());
        let said = Said { sequence: 1, message: Message::default(), principal: String::new() };
        let mut turn = Turn::new(ids, said, second(100), None, told);
        let data = Some(Data::ToolCallRequested(ToolCallRequested::default()));
        let event = Some(wire::session::Event { data, ..wire::session::Event::default() });
        // The log says when, whoever reads it.
        turn.note(&Entry { sequence: 9, time: second(200), record: Record { event, ..Record::default() } });
        let left = |now| turn.left_of(Duration::from_secs(60), second(now)).as_secs();
        assert_eq!([left(200), left(250), left(900)], [60, 10, 0]);
    }
}
