//! Events that share a publication.

use domain::EventKind;

/// Joins deltas that follow each other: what arrived together is one event.
pub(super) fn merged(kinds: Vec<EventKind>) -> Vec<EventKind> {
    let mut merged: Vec<EventKind> = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let joined = merged.last_mut().is_some_and(|last| join(last, &kind));
        if !joined {
            merged.push(kind);
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
        let delta =
            |id: &str, text: &str| EventKind::TextDelta { message: MessageId::new(id), text: text.into() };
        let before = vec![delta("a", "1"), delta("a", "2"), delta("b", "3"), delta("a", "4")];
        assert_eq!(merged(before), [delta("a", "12"), delta("b", "3"), delta("a", "4")]);
    }
}
