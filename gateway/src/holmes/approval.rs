//! Calls that wait for a person: what the person is shown, and the decisions that come back with the history.

use domain::{Approval, ToolCall, ToolEffect};
use grants::Decider;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::agent::{self as wire_agent, ChatRequest};

use crate::approvals::Approvals;

use super::{
    fields::Fields,
    item::Item,
    marks::{self, Waiting},
};

const DECISIONS: &str = "tool_decisions";
/// What the model reads of a call that a person did not allow.
const DENIED: &str = "Not run: the user refused this call.";

/// What a client says about calls that wait.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    decisions: Vec<Decision>,
    marks: marks::Incoming,
}

/// What a person decided about a call.
#[derive(Debug)]
struct Decision {
    call: String,
    approved: bool,
    save_prefixes: Vec<String>,
    feedback: Option<String>,
}

/// There are decisions, and nothing waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Received {0} tool decisions, but no call in conversation_history waits for an approval")]
pub(crate) struct NothingWaits(usize);

impl Decided {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        let items = fields.list(DECISIONS).into_iter().enumerate();
        let decisions: Vec<_> = items
            .map(|(index, item)| {
                let mut item = Item::open(fields, DECISIONS, index, item);
                Decision {
                    call: item.required("tool_call_id"),
                    approved: item.required_flag("approved"),
                    save_prefixes: item.strings("save_prefixes"),
                    feedback: item.optional("feedback").filter(|text| !text.trim().is_empty()),
                }
            })
            .collect();
        Self { decisions, marks: fields.marks() }
    }

    /// Whether the request goes on with something, so that it needs no question.
    pub(super) fn resumes(&self) -> bool {
        !self.decisions.is_empty()
    }

    /// Adds to a question what the decisions are worth.
    pub(crate) fn apply(
        self,
        chat: &mut ChatRequest,
        approvals: Option<&Approvals>,
        by: Decider<'_>,
    ) -> Result<(), NothingWaits> {
        if !self.decisions.is_empty() && self.marks.waiting.is_empty() {
            return Err(NothingWaits(self.decisions.len()));
        }
        chat.approvals &= approvals.is_some();
        if let Some(approvals) = approvals {
            let known = self.marks.standing.into_iter();
            let known: Vec<_> =
                known.filter_map(|grant| Some((approvals.session(&grant, by)?, grant))).collect();
            chat.session = known.first().map(|(session, _)| session.clone()).unwrap_or_default();
            chat.standing_grants = known
                .into_iter()
                .filter(|(session, _)| *session == chat.session)
                .map(|(_, grant)| grant)
                .collect();
        }
        for decision in self.decisions {
            // A decision about anything else decides nothing.
            let Some(waiting) = self.marks.waiting.iter().find(|call| call.id == decision.call) else {
                continue;
            };
            let decided = decision.settle(waiting, approvals, by, &mut chat.session);
            chat.decisions.push(decided.unwrap_or_else(|denial| denied(waiting, denial)));
        }
        Ok(())
    }
}

impl Decision {
    /// The permission; the error is why there is none.
    fn settle(
        self,
        waiting: &Waiting,
        approvals: Option<&Approvals>,
        by: Decider<'_>,
        session: &mut String,
    ) -> Result<wire_agent::Decision, String> {
        if !self.approved {
            return Err(match self.feedback {
                Some(feedback) => format!("{DENIED} The user says: {feedback}"),
                None => DENIED.to_owned(),
            });
        }
        let unverified = |why: &dyn std::fmt::Display| {
            format!(
                "Not run: the user's approval could not be verified ({why}). If the call is still needed, make it \
                 again, so that the user is asked again."
            )
        };
        let approvals = approvals.ok_or_else(|| unverified(&"this server has no key for approvals"))?;
        let token = waiting.token.as_deref().ok_or_else(|| unverified(&"its token is missing"))?;
        let call = approvals.pending(token, by).map_err(|why| unverified(&why))?;
        if !waiting.is(&call) {
            return Err(unverified(&"the call is not the one that was shown"));
        }
        if session.is_empty() {
            session.clone_from(&call.run);
        }
        Ok(wire_agent::Decision {
            run_id: call.run.clone(),
            call_id: call.call.clone(),
            standing_grants: approvals.standing(&call, session, self.save_prefixes, by).into_iter().collect(),
            decision: Some(wire_agent::decision::Decision::Grant(approvals.exact(&call, by))),
        })
    }
}

fn denied(waiting: &Waiting, why: String) -> wire_agent::Decision {
    wire_agent::Decision {
        call_id: waiting.id.clone(),
        decision: Some(wire_agent::decision::Decision::Denial(why)),
        ..wire_agent::Decision::default()
    }
}

/// A call that waits for a person, as it is shown. The fields from `command` on are ours.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PendingApproval {
    tool_call_id: String,
    tool_name: String,
    description: String,
    params: Box<RawValue>,
    /// The command as it would run.
    command: String,
    /// What it would touch.
    target: String,
    /// What it can do: `read`, `sensitive_read` or `mutation`.
    effect: &'static str,
    reason: String,
    /// What may be sent back as `save_prefixes`.
    suggested_prefixes: Vec<String>,
}

impl PendingApproval {
    pub(super) fn new(call: &ToolCall, description: String, approval: Approval) -> Self {
        Self {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.clone(),
            description,
            params: params(call, &approval.prefixes),
            command: approval.command,
            target: approval.target,
            effect: match approval.effect {
                ToolEffect::Read => "read",
                ToolEffect::SensitiveRead => "sensitive_read",
                ToolEffect::Mutation => "mutation",
            },
            reason: approval.reason,
            suggested_prefixes: approval.prefixes,
        }
    }
}

/// The arguments, with the prefixes that could really be saved in the place of those that the model suggested.
pub(super) fn params(call: &ToolCall, prefixes: &[String]) -> Box<RawValue> {
    #[derive(Deserialize)]
    struct Arguments(serde_json::Map<String, serde_json::Value>);
    const PREFIXES: &str = "suggested_prefixes";
    let text = match serde_json::from_str(&call.arguments) {
        Ok(Arguments(mut arguments)) if arguments.contains_key(PREFIXES) => {
            arguments.insert(PREFIXES.to_owned(), prefixes.into());
            serde_json::Value::Object(arguments).to_string()
        }
        Ok(_) | Err(_) => call.arguments.clone(),
    };
    RawValue::from_string(text).unwrap_or_default()
}
