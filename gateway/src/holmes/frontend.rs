//! Tools that the client runs: their definitions, and the results with which a client comes back.

use http::StatusCode;
use wire::agent::{ClientResult, ClientTool};

use crate::problem::Problem;

use super::{fields::Fields, item::Item};

const TOOLS: &str = "frontend_tools";
const RESULTS: &str = "frontend_tool_results";

/// The tools that the client offers.
pub(super) fn tools(fields: &mut Fields<'_>) -> Vec<ClientTool> {
    let items = fields.list(TOOLS).into_iter().enumerate();
    items.map(|(index, item)| tool(Item::open(fields, TOOLS, index, item))).collect()
}

/// The results of tools that an earlier run waits for.
pub(super) fn results(fields: &mut Fields<'_>) -> Vec<ClientResult> {
    let items = fields.list(RESULTS).into_iter().enumerate();
    items
        .map(|(index, item)| {
            let mut item = Item::open(fields, RESULTS, index, item);
            // The agent knows which tool was called.
            item.required("tool_name");
            ClientResult { call_id: item.required("tool_call_id"), result: item.required("result") }
        })
        .collect()
}

/// A client that does not read a stream cannot come back to one.
pub(super) fn check(tools: &[ClientTool], stream: bool) -> Result<(), Problem> {
    let pausing = tools.iter().find(|tool| tool.noop_response.is_none());
    match pausing {
        Some(tool) if !stream => {
            let text = format!(
                "The frontend tool '{}' has mode 'pause', which needs a stream: set \"stream\": true, or use mode \
                 'noop'",
                tool.name
            );
            Err(Problem::new(StatusCode::BAD_REQUEST, text))
        }
        Some(_) | None => Ok(()),
    }
}

fn tool(mut item: Item<'_, '_>) -> ClientTool {
    let (name, description) = (item.required("name"), item.required("description"));
    let (parameters_json, mode) = (item.object("parameters"), item.optional("mode"));
    let response = item.optional("noop_response").unwrap_or_default();
    let noop_response = match mode.as_deref() {
        None | Some("pause") => None,
        Some("noop") => Some(response),
        Some(_) => {
            item.wrong("mode", "Input should be 'pause' or 'noop'");
            None
        }
    };
    ClientTool { name, description, parameters_json, noop_response }
}
