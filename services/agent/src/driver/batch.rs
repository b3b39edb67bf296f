//! Events that share a publication.

use domain::{AgentId, Event, EventKind, Move, RunId, Timestamp};
use runtime::clock;

/// An event that is to be published.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    agent: AgentId,
    parent: Option<AgentId>,
    pub(super) kind: EventKind,
}

impl Entry {
    /// An event of the agent that answers.
    pub(crate) fn main(kind: EventKind) -> Self {
        Self { agent: AgentId::main(), parent: None, kind }
    }

    /// The events of a move, which keeps its effects.
    pub(crate) fn of(of: &mut Move) -> Vec<Self> {
        let Move { agent, parent, step } = of;
        let events = std::mem::take(&mut step.events).into_iter();
        events.map(|kind| Self { agent: agent.clone(), parent: parent.clone(), kind }).collect()
    }
}

/// The events that follow a position of a run's log.
pub(crate) fn stamped(run: &RunId, after: u64, entries: impl IntoIterator<Item = Entry>) -> Vec<Event> {
    let time = Timestamp(clock::unix_nanos());
    let placed = entries.into_iter().zip(after.saturating_add(1)..);
    let stamp = |(Entry { agent, parent, kind }, position)| {
        let run = run.clone();
        Event { run, position, time, agent, parent, kind }
    };
    placed.map(stamp).collect()
}

/// Joins deltas that follow each other: what arrived together is one event.
pub(super) fn merged(entries: Vec<Entry>) -> Vec<Entry> {
    let mut merged: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let same = |last: &&mut Entry| last.agent == entry.agent;
        let joined = merged.last_mut().filter(same).is_some_and(|last| join(&mut last.kind, &entry.kind));
        if !joined {
            merged.push(entry);
        }
    }
    merged
}

fn join(last: &mut EventKind, next: &EventKind) -> bool {
    use EventKind::{TextDelta, ThinkingDelta, ToolOutput};
    let (text, more) = match (last, next) {
        (TextDelta { message, text }, TextDelta { message: same, text: more }) if message == same => {
            (text, more)
        }
        (ThinkingDelta { message, text }, ThinkingDelta { message: same, text: more }) if message == same => {
            (text, more)
        }
        (
            ToolOutput { call, stream, text },
            ToolOutput { call: same_call, stream: same_stream, text: more },
        ) if call == same_call && stream == same_stream => (text, more),
        _ => return false,
    };
    text.push_str(more);
    true
}

#[cfg(test)]
mod tests {
    use domain::MessageId;

    use super::*;

    #[test]
    fn only_neighbours_of_one_message_are_joined() {
        let delta = |agent: AgentId, id: &str, text: &str| Entry {
            agent,
            parent: None,
            kind: EventKind::TextDelta { message: MessageId::new(id), text: text.into() },
        };
        let main = |id, text| delta(AgentId::main(), id, text);
        let sub = |id, text| delta(AgentId::sub(1), id, text);
        let before = vec![main("a", "1"), main("a", "2"), main("b", "3"), sub("b", "4"), main("a", "5")];
        assert_eq!(merged(before), [main("a", "12"), main("b", "3"), sub("b", "4"), main("a", "5")]);
    }
}
