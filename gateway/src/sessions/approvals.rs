//! What people decide about tool calls that wait, signed.

use axum::{Json, extract::Request};
use grants::Decider;
use http::StatusCode;
use serde_json::{Value, json};
use wire::session::{Session, ToolApprovalRequested, ToolDecision, tool_decision::Decision};

use super::{
    Sessions, ids_of,
    problem::Problem,
    request::{self, DecisionBody, DecisionsBody, Word},
};
use crate::{approvals::PendingCall, body};

/// What the model reads of a call that a person did not allow.
const DENIED: &str = "Not run: the user refused this call.";

/// `POST …/tool-approvals`
pub(super) async fn decide(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let session_id = ids_of(&request)?;
    let body = body::read_json(request, &sessions.shared).await?;
    let DecisionsBody { decisions } = request::read(&body)?;
    let session = sessions.upstream().get(sessions.caller(), &session_id).await?;
    let by = sessions.asker.decides();
    let mut resolved = Vec::new();
    let mut signed = Vec::new();
    for decision in decisions {
        let asked = find(&session, &decision.tool_call_id)?;
        let tool = asked.tool_call.as_ref().map(|call| call.name.clone());
        resolved.push(json!({
            "tool_call_id": decision.tool_call_id, "tool": tool, "outcome": decision.decision.outcome(),
        }));
        signed.push(sessions.sign(&session_id, asked, decision, by)?);
    }
    let accepted = sessions.upstream().decisions(sessions.caller(), &session_id, signed).await?;
    Ok(Json(json!({ "resolved": resolved, "accepted": accepted, "status": "active" })))
}

fn find<'a>(session: &'a Session, call: &str) -> Result<&'a ToolApprovalRequested, Problem> {
    let is = |asked: &&ToolApprovalRequested| asked.tool_call.as_ref().is_some_and(|asked| asked.id == call);
    let asked = session.pending_approvals.iter().find(is);
    asked.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "pending approval request not found"))
}

impl Sessions {
    fn sign(
        &self,
        session: &str,
        asked: &ToolApprovalRequested,
        decision: DecisionBody,
        by: Decider<'_>,
    ) -> Result<ToolDecision, Problem> {
        let DecisionBody { tool_call_id, decision, note } = decision;
        let Some(approvals) = &self.shared.approvals else {
            return Err(Problem::new(StatusCode::CONFLICT, "this server has no key for approvals"));
        };
        let call = pending(asked, by);
        let (decision, standing) = match decision {
            Word::Allow => (Decision::Grant(approvals.exact(&call, by)), None),
            Word::AllowAlways => {
                let standing = approvals.standing(&call, session, asked.prefixes.clone(), by);
                (Decision::Grant(approvals.exact(&call, by)), standing)
            }
            Word::Reject | Word::RejectAlways => {
                let note = note.map(|note| format!(" The user says: {note}")).unwrap_or_default();
                (Decision::Denial(format!("{DENIED}{note}")), None)
            }
        };
        let standing_grants = standing.into_iter().collect();
        Ok(ToolDecision { tool_call_id, decision: Some(decision), standing_grants })
    }
}

fn pending(asked: &ToolApprovalRequested, by: Decider<'_>) -> PendingCall {
    let call = asked.tool_call.clone().unwrap_or_default();
    PendingCall {
        account: by.account.to_owned(),
        run: asked.run_id.clone(),
        call: call.id,
        tool: call.name,
        arguments: grants::sha256(&call.arguments_json),
        policy: asked.policy_version.clone(),
        target: asked.target.clone().unwrap_or_default(),
        prefixes: asked.prefixes.clone(),
        asked_at: by.now,
        session: String::new(),
        patterns: std::collections::BTreeMap::new(),
    }
}
