//! Calls that a client-held history leaves open: providers refuse a conversation in which a call has no result.

use std::collections::{HashMap, HashSet};

use domain::{CallId, EventKind, Message, Permission, ToolCall, ToolResult, ToolStatus};

/// What the model reads of a call whose result the client did not bring.
const NO_RESULT: &str = "The client was asked to run this tool and came back without a result.";
/// What it reads of a call that nobody decided about.
const NO_DECISION: &str = "Not run: the client came back without a decision about this call.";
/// What it reads of a call that nobody waits for any more.
const ABANDONED: &str = "Not run: the user asked something new before this call was settled.";

/// What it reads of a call whose permission has been used.
pub(super) const USED_UP: &str = "Not run: this call was decided about before, and a permission counts once. If it is still needed, make it again.";
/// What it reads of a call that cannot have been asked for.
pub(super) const FORGOTTEN: &str = "Not run: the run that asked for this permission is not known here. If the call is still needed, make it again.";

/// What a client brings for calls that an earlier run left open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brought {
    /// Results of its own tools.
    pub results: HashMap<CallId, String>,
    /// What a person decided.
    pub decisions: HashMap<CallId, Decision>,
}

/// What a person decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Approved(Permission),
    /// The text tells the model why.
    Denied(String),
}

/// An open call, and how it goes on.
#[derive(Debug, PartialEq)]
pub(super) enum Settled {
    /// It has its result.
    Resolved(Box<EventKind>),
    /// It may run now.
    Approved(ToolCall, Permission),
}

impl From<EventKind> for Settled {
    fn from(resolved: EventKind) -> Self {
        Self::Resolved(Box::new(resolved))
    }
}

/// Settles each open call of a history: by what the client brings, or with an error.
pub(super) fn settle(history: &[Message], brought: &Brought) -> Vec<Settled> {
    let answered: HashSet<_> =
        history.iter().filter_map(|message| message.answers.as_ref().map(|(call, _)| call)).collect();
    let calls = history.iter().flat_map(|message| &message.tool_calls);
    let open = calls.filter(|call| !answered.contains(&call.id));
    open.map(|call| brought.settle(call)).collect()
}

impl Brought {
    fn settle(&self, call: &ToolCall) -> Settled {
        if let Some(data) = self.results.get(&call.id) {
            return resolved(call.clone(), success(data), true);
        }
        match self.decisions.get(&call.id) {
            Some(Decision::Approved(permission)) => Settled::Approved(call.clone(), permission.clone()),
            Some(Decision::Denied(why)) => refused(call.clone(), why).into(),
            None if !self.decisions.is_empty() => refused(call.clone(), NO_DECISION).into(),
            None if !self.results.is_empty() => refused(call.clone(), NO_RESULT).into(),
            None => refused(call.clone(), ABANDONED).into(),
        }
    }
}

/// A call that does not run.
pub(super) fn refused(call: ToolCall, why: &str) -> EventKind {
    EventKind::CallResolved { call, result: ToolResult::error(why), by_client: false }
}

fn resolved(call: ToolCall, result: ToolResult, by_client: bool) -> Settled {
    EventKind::CallResolved { call, result, by_client }.into()
}

fn success(data: &str) -> ToolResult {
    ToolResult { status: ToolStatus::Success, data: data.to_owned(), error: None, ..ToolResult::error("") }
}

#[cfg(test)]
mod tests {
    use domain::{Role, RunId};

    use super::*;

    #[test]
    fn only_open_calls_are_settled() {
        let call = |id: &str| ToolCall { id: CallId::new(id), name: "chart".into(), arguments: "{}".into() };
        let mut asked = Message::text(Role::Assistant, "");
        asked.tool_calls = ["a", "b", "c", "d", "e"].map(call).to_vec();
        let history = [asked, Message::tool(CallId::new("a"), "chart", "done")];
        let permission =
            Permission { run: RunId::new("r"), grant: vec![1], standing: Vec::new(), always: false };
        let mut brought = Brought {
            results: [("b", "drawn"), ("x", "?")].map(|(id, data)| (CallId::new(id), data.to_owned())).into(),
            ..Brought::default()
        };
        let settled = |brought: &Brought| settle(&history, brought);
        let refused = |id, why| Settled::from(refused(call(id), why));
        assert_eq!(settled(&brought)[1], refused("c", NO_RESULT));

        let decided = [
            (CallId::new("c"), Decision::Approved(permission.clone())),
            (CallId::new("d"), Decision::Denied("no".to_owned())),
            (CallId::new("a"), Decision::Approved(permission.clone())),
        ];
        brought.decisions = decided.into();
        let expected = [
            resolved(call("b"), success("drawn"), true),
            Settled::Approved(call("c"), permission),
            refused("d", "no"),
            refused("e", NO_DECISION),
        ];
        assert_eq!(settled(&brought), expected);
        assert_eq!(settled(&Brought::default())[0], refused("b", ABANDONED));
    }
}
