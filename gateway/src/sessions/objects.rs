//! Sessions, and what there is beside them, as JSON.

use serde_json::{Value, json};
use wire::{
    agent::ModelInfo,
    session::{PlacedMessage, PostMessageResponse, Session, SessionStatus, ToolApprovalRequested},
};

use super::{
    capabilities, ids,
    object::{Object, all},
    parts,
};

/// Name of the harness, and of the agent in it.
pub(super) const NAME: &str = "sleuth";
const ORGANIZATION: &str = "org_00000000000000000000000000000000";
/// When the built-in objects were made, as far as a client cares.
const MADE: &str = "2026-01-01T00:00:00Z";

pub(super) fn session(session: Session) -> Value {
    let status = status(session.status());
    let settings = session.settings.unwrap_or_default();
    let agent = if settings.agent_id.is_empty() { wire::AGENT_ID.to_owned() } else { settings.agent_id };
    let built_in = agent == wire::AGENT_ID;
    let harness =
        if settings.harness_id.is_empty() { wire::HARNESS_ID.to_owned() } else { settings.harness_id };
    let turn = Some(session.turn_id).filter(|turn| !turn.is_empty());
    let model = Some(settings.model).filter(|model| !model.is_empty());
    let time = |time: Option<prost_types::Timestamp>| time.map(|time| time.to_string());
    Object::default()
        .with("id", session.id)
        .with("organization_id", ORGANIZATION)
        .with("harness_id", harness)
        .with("agent_id", agent)
        .may("agent_name", built_in.then_some(NAME))
        .with("status", status)
        .with("turn_id", turn)
        .text("title", settings.title)
        .with("tags", settings.tags)
        .may("model_id", model.map(|model| ids::model(&model)))
        .json("hints", Some(settings.hints_json))
        .json("metadata", Some(settings.metadata_json))
        .text("locale", settings.locale)
        .text("system_prompt", settings.system_prompt)
        .with("capabilities", capabilities::list(settings.subagents))
        .may("max_iterations", Some(settings.max_iterations).filter(|most| *most > 0))
        .list("tools", settings.tools, tool)
        .with("created_at", time(session.created_at))
        .with("updated_at", time(session.updated_at))
        .may("usage", session.usage.map(parts::usage))
        .with("pending_tool_calls", all(session.pending_tool_calls, |call| parts::tool_call(call).into()))
        .with("pending_approvals", all(session.pending_approvals, approval))
        .with("pending_questions", json!([]))
        .into()
}

fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Active => "active",
        SessionStatus::Idle => "idle",
        SessionStatus::Waiting => "waitingfortoolresults",
        SessionStatus::Started | SessionStatus::Unspecified => "started",
    }
}

pub(super) fn tool(tool: wire::agent::ClientTool) -> Value {
    Object::default()
        .with("type", "client_side")
        .with("name", tool.name)
        .with("description", tool.description)
        .json("parameters", Some(tool.parameters_json))
        .into()
}

fn approval(asked: ToolApprovalRequested) -> Value {
    let call = asked.tool_call.clone().unwrap_or_default();
    Object::default()
        .with("tool_call_id", call.id)
        .with("tool_name", call.name)
        .with("arguments", parts::parsed(&call.arguments_json))
        .join(parts::approval(asked))
        .into()
}

pub(super) fn posted(session_id: &str, posted: PostMessageResponse) -> Value {
    let placed = PlacedMessage { message: posted.message, sequence: posted.sequence };
    let Value::Object(mut message) = placed_message(session_id, placed) else { return Value::Null };
    message.insert("turn_id".to_owned(), posted.turn_id.into());
    Value::Object(message)
}

pub(super) fn placed_message(session_id: &str, placed: PlacedMessage) -> Value {
    parts::message(placed.message.unwrap_or_default())
        .with("session_id", session_id)
        .with("sequence", placed.sequence)
        .into()
}

pub(super) fn harness() -> Value {
    json!({
        "id": wire::HARNESS_ID, "name": NAME, "display_name": "Sleuth", "status": "active", "built_in": true,
        "description": "Troubleshoots production systems", "capabilities": [], "tags": [],
        "created_at": MADE, "updated_at": MADE,
    })
}

pub(super) fn agent() -> Value {
    json!({
        "id": wire::AGENT_ID, "name": NAME, "display_name": "Sleuth", "status": "active", "built_in": true,
        "description": "Investigates what goes wrong", "harness_id": wire::HARNESS_ID, "system_prompt": "",
        "capabilities": [], "tags": [], "created_at": MADE, "updated_at": MADE,
    })
}

/// A model. That it is configured is all that is known of it: its provider is asked with a question only.
pub(super) fn model(model: &ModelInfo) -> Value {
    let ModelInfo { name, provider, .. } = model;
    json!({
        "id": ids::model(name), "model_id": name, "display_name": name, "provider_id": ids::provider(provider),
        "provider_name": provider, "provider_type": provider, "enabled": true, "healthy": true,
        "source": "config",
    })
}
