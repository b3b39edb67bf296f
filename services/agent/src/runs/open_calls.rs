//! Calls that a client-held history leaves open: providers refuse a conversation in which a call has no result.

use std::collections::{HashMap, HashSet};

use domain::{CallId, EventKind, Message, ToolCall, ToolResult, ToolStatus};

/// What the model reads of a call whose result the client did not bring.
const NO_RESULT: &str = "The client was asked to run this tool and came back without a result.";
/// What it reads of a call that nobody waits for any more.
const ABANDONED: &str = "Not run: the user asked something new before this call was settled.";

/// Settles each open call of a history: with the client's result, or with an error.
pub(super) fn settle(history: &[Message], results: &HashMap<CallId, String>) -> Vec<EventKind> {
    let answered: HashSet<_> =
        history.iter().filter_map(|message| message.answers.as_ref().map(|(call, _)| call)).collect();
    let calls = history.iter().flat_map(|message| &message.tool_calls);
    let open = calls.filter(|call| !answered.contains(&call.id));
    open.map(|call| settled(call, results)).collect()
}

fn settled(call: &ToolCall, results: &HashMap<CallId, String>) -> EventKind {
    let (result, by_client) = match results.get(&call.id) {
        Some(data) => (success(data), true),
        None if results.is_empty() => (ToolResult::error(ABANDONED), false),
        None => (ToolResult::error(NO_RESULT), false),
    };
    EventKind::CallResolved { call: call.clone(), result, by_client }
}

fn success(data: &str) -> ToolResult {
    ToolResult { status: ToolStatus::Success, data: data.to_owned(), error: None, ..ToolResult::error("") }
}

#[cfg(test)]
mod tests {
    use domain::Role;

    use super::*;

    #[test]
    fn only_open_calls_are_settled() {
        let call = |id: &str| ToolCall { id: CallId::new(id), name: "chart".into(), arguments: "{}".into() };
        let mut asked = Message::text(Role::Assistant, "");
        asked.tool_calls = vec![call("a"), call("b"), call("c")];
        let history = [asked, Message::tool(CallId::new("a"), "chart", "done")];
        let results =
            HashMap::from([(CallId::new("b"), "drawn".to_owned()), (CallId::new("x"), "?".to_owned())]);
        let settled = |call, result, by_client| EventKind::CallResolved { call, result, by_client };
        assert_eq!(
            settle(&history, &results),
            [
                settled(call("b"), success("drawn"), true),
                settled(call("c"), ToolResult::error(NO_RESULT), false)
            ]
        );
        let abandoned = settle(&history, &HashMap::new());
        assert_eq!(abandoned[0], settled(call("b"), ToolResult::error(ABANDONED), false));
    }
}
