//! Tools that the client of one run offers.

use std::sync::Arc;

use domain::{ClientTool, ClientToolMode, ToolCall, ToolPlan, ToolResult, ToolStatus, ToolVerdict};
use model::ToolSpec;
use serde_json::json;

use super::Offer;

const TOOLSET: &str = "client";
/// What the model reads of a tool that is done without it, unless the client says something else.
const DONE: &str = "Done: the client does this by itself. Go on.";

/// A client's tool cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("the frontend tool '{0}' has the name of a built-in tool: choose another name")]
    BuiltIn(String),
    #[error("there are two frontend tools with the name '{0}'")]
    Twice(String),
    #[error("a frontend tool has no name")]
    Nameless,
    #[error("the parameters of the frontend tool '{0}' are not a JSON object")]
    Schema(String),
}

/// The tools of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientTools(Arc<[ClientTool]>);

impl ClientTools {
    pub(super) fn new(tools: Vec<ClientTool>) -> Self {
        Self(tools.into())
    }

    /// Adds them to an offer.
    pub(super) fn join(&self, offer: Offer) -> Result<Offer, Unusable> {
        if self.0.is_empty() {
            return Ok(offer);
        }
        let (mut specs, mut toolsets) = (offer.specs.to_vec(), offer.toolsets.to_vec());
        for (at, tool) in self.0.iter().enumerate() {
            if tool.name.is_empty() {
                return Err(Unusable::Nameless);
            }
            if offer.specs.iter().any(|spec| spec.name == tool.name) {
                return Err(Unusable::BuiltIn(tool.name.clone()));
            }
            if self.0[..at].iter().any(|other| other.name == tool.name) {
                return Err(Unusable::Twice(tool.name.clone()));
            }
            specs.push(spec(tool)?);
            toolsets.push(TOOLSET.to_owned());
        }
        Ok(Offer { specs: specs.into(), toolsets: toolsets.into(), ..offer })
    }

    fn find(&self, call: &ToolCall) -> Option<&ClientTool> {
        self.0.iter().find(|tool| tool.name == call.name)
    }

    pub(super) fn owns(&self, call: &ToolCall) -> bool {
        self.find(call).is_some()
    }

    pub(super) fn plan(&self, call: &ToolCall) -> ToolPlan {
        let verdict = match self.find(call).map(|tool| &tool.mode) {
            Some(ClientToolMode::Pause) => ToolVerdict::AskClient,
            Some(ClientToolMode::Noop(_)) | None => ToolVerdict::Allow,
        };
        ToolPlan::own(call, format!("Frontend tool: {}", call.name), None, verdict)
    }

    pub(super) fn run(&self, call: &ToolCall) -> ToolResult {
        let data = match self.find(call).map(|tool| &tool.mode) {
            Some(ClientToolMode::Noop(text)) if !text.is_empty() => text.clone(),
            Some(ClientToolMode::Noop(_) | ClientToolMode::Pause) | None => DONE.to_owned(),
        };
        // Nothing ran here, so the same call may be made again.
        ToolResult { status: ToolStatus::Success, data, error: None, ..ToolResult::error("") }
    }
}

fn spec(tool: &ClientTool) -> Result<ToolSpec, Unusable> {
    let parameters = match tool.parameters.as_str() {
        "" => Ok(json!({"type": "object"})),
        text => serde_json::from_str(text),
    };
    match parameters {
        Ok(parameters @ serde_json::Value::Object(_)) => {
            Ok(ToolSpec { name: tool.name.clone(), description: tool.description.clone(), parameters })
        }
        Ok(_) | Err(_) => Err(Unusable::Schema(tool.name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: &str) -> ClientTool {
        ClientTool {
            name: name.into(),
            description: String::new(),
            parameters: parameters.into(),
            mode: ClientToolMode::Pause,
        }
    }

    #[test]
    fn names_must_be_free_and_schemas_objects() {
        let bash = ToolSpec { name: "bash".into(), description: String::new(), parameters: json!({}) };
        let offer =
            || Offer { specs: [bash.clone()].into(), toolsets: ["bash".into()].into(), ..Offer::default() };
        let join =
            |tools: Vec<ClientTool>| ClientTools::new(tools).join(offer()).map(|offer| offer.specs.len());
        assert_eq!(join(vec![tool("chart", ""), tool("go", "{\"type\":\"object\"}")]), Ok(3));
        assert_eq!(join(vec![tool("bash", "")]), Err(Unusable::BuiltIn("bash".into())));
        assert_eq!(join(vec![tool("go", ""), tool("go", "")]), Err(Unusable::Twice("go".into())));
        assert_eq!(join(vec![tool("", "")]), Err(Unusable::Nameless));
        assert_eq!(join(vec![tool("go", "[]")]), Err(Unusable::Schema("go".into())));
    }
}
