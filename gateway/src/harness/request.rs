//! The body of `POST /chat`. Unknown fields are ignored.

use serde::Deserialize;
use serde_json::Value;
use wire::agent::{ChatRequest, Limits, RlmMode, Subagents};

use super::{messages, permissions, refusal::Refusal};

/// Whose tools it has.
const PROFILE: &str = "harness";
/// What subagents a run may have.
const SUBAGENTS: Subagents = Subagents { depth: 4, number: 64 };

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    model: Option<String>,
    messages: Option<Value>,
    context: Option<String>,
    permissions: Option<Value>,
    mode: Option<Value>,
    max_iterations: Option<f64>,
    max_depth: Option<u32>,
    exec_cwd: Option<String>,
    cluster: Option<String>,
}

/// A question as the agent takes it.
pub(super) fn parse(body: &[u8]) -> Result<ChatRequest, Refusal> {
    let value: Value = serde_json::from_slice(body).map_err(|_| Refusal::not_json())?;
    let required = || Refusal::bad("model and messages are required");
    if !value.is_object() {
        return Err(required());
    }
    let body: Body = serde_json::from_value(value).map_err(|error| Refusal::bad(&error.to_string()))?;
    let Value::Array(given) = body.messages.ok_or_else(required)? else {
        return Err(Refusal::bad("messages must be a list"));
    };
    let limits = body.max_iterations.map(limits).transpose()?;
    let rlm = body.mode.is_some_and(|mode| mode == "rlm");
    let (context, addition) = match rlm {
        true => (body.context.unwrap_or_default(), String::new()),
        false => (String::new(), body.context.unwrap_or_default()),
    };
    let rlm = rlm.then(|| RlmMode {
        context,
        max_depth: body.max_depth,
        max_iterations: limits.as_ref().map_or(0, |limits| limits.steps),
        max_model_calls: 0,
        exec_directory: body.exec_cwd.unwrap_or_default(),
    });
    let messages::Conversation { question, images, documents, history } = messages::read(given)?;
    let permissions = permissions::read(body.permissions)?;
    Ok(ChatRequest {
        question,
        images,
        documents,
        decisions: permissions::denials(&permissions, &history),
        history,
        // Without one, and with an empty one, the default answers.
        model: body.model.unwrap_or_default(),
        additional_system_prompt: addition,
        // In code mode the ceiling is of code.
        limits: limits.filter(|_| rlm.is_none()),
        rlm,
        permissions: Some(permissions.into()),
        approvals: true,
        waits: true,
        session: uuid::Uuid::now_v7().to_string(),
        subagents: Some(SUBAGENTS),
        profile: PROFILE.to_owned(),
        cluster: body.cluster.unwrap_or_default(),
        ..ChatRequest::default()
    })
}

fn limits(iterations: f64) -> Result<Limits, Refusal> {
    if !(1.0..=f64::from(u32::MAX)).contains(&iterations) {
        return Err(Refusal::bad("maxIterations must be a number from 1 on"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was checked")]
    let steps = iterations as u32;
    Ok(Limits { steps, ..Limits::default() })
}
