//! What our answers mark in a history, for when it comes back: calls that wait for the client, the tokens of those
//! that wait for a person, and standing permissions. All of it is signed where it counts.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{CallId, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::approvals::PendingCall;

/// The member of a tool message that carries standing permissions.
pub(super) const GRANTS: &str = "approval_grants";
/// The member of a call that waits for a person.
const PENDING: &str = "pending_approval";

/// What is to be marked in a history on its way out.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Calls that the client runs.
    pub(super) with_client: Vec<ToolCall>,
    /// Tokens of calls that wait for a person.
    pub(super) tokens: HashMap<CallId, String>,
    /// Standing permissions that came with a call's approval.
    pub(super) standing: HashMap<CallId, Vec<Vec<u8>>>,
}

impl Outgoing {
    pub(super) fn waits_for_client(&self, call: &ToolCall) -> bool {
        self.with_client.iter().any(|waits| waits.id == call.id)
    }

    /// Standing permissions for the message that answers a call.
    pub(super) fn grants(&self, call: &CallId) -> Vec<String> {
        let grants = self.standing.get(call).into_iter().flatten();
        grants.map(|grant| STANDARD.encode(grant)).collect()
    }
}

/// What is marked in a history that a client sent.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// Calls that wait for a person.
    pub(super) waiting: Vec<Waiting>,
    /// Standing permissions, not checked yet.
    pub(super) standing: Vec<Vec<u8>>,
}

/// A call that waits for a person, as the client holds it.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: String,
    pub(super) token: Option<String>,
    name: String,
    arguments: String,
}

impl Waiting {
    /// Whether this is the call that was signed.
    pub(super) fn is(&self, call: &PendingCall) -> bool {
        self.id == call.call && self.name == call.tool && grants::sha256(&self.arguments) == call.arguments
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    tool_calls: Option<Vec<Call>>,
    approval_grants: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
    pending_approval: Option<bool>,
    approval_token: Option<String>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Option<String>,
}

impl Incoming {
    /// Looks for marks. What has another form has none: the history is checked elsewhere.
    pub(super) fn read(items: &[&RawValue]) -> Self {
        let mut marks = Self::default();
        // Most messages have none, and looking is cheaper than reading.
        let marked = |item: &&&RawValue| item.get().contains(PENDING) || item.get().contains(GRANTS);
        for item in items.iter().filter(marked) {
            let message: Message = serde_json::from_str(item.get()).unwrap_or_default();
            let grants = message.approval_grants.into_iter().flatten();
            marks.standing.extend(grants.filter_map(|grant| STANDARD.decode(grant).ok()));
            let calls = message.tool_calls.into_iter().flatten();
            marks.waiting.extend(calls.filter(|call| call.pending_approval == Some(true)).map(Waiting::from));
        }
        marks
    }
}

impl From<Call> for Waiting {
    fn from(call: Call) -> Self {
        let Function { name, arguments } = call.function;
        Self { id: call.id, token: call.approval_token, name, arguments: arguments.unwrap_or_default() }
    }
}
