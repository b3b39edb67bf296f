//! What a session or an agent is able to do beside what all are.

use serde::Deserialize;
use serde_json::{Value, json};
use wire::agent::Subagents;

use super::problem::Problem;

const SUBAGENTS: &str = "subagents";

#[derive(Debug, Deserialize)]
pub(super) struct Capability {
    #[serde(rename = "ref")]
    name: String,
    #[serde(default)]
    config: Config,
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    depth: Option<u32>,
    number: Option<u32>,
}

/// The subagents that a list of capabilities allows.
pub(super) fn subagents(capabilities: Vec<Capability>) -> Result<Option<Subagents>, Problem> {
    let mut subagents = None;
    for Capability { name, config } in capabilities {
        if name != SUBAGENTS {
            return Err(Problem::bad(format!("capabilities: there is no `{name}`; there is: {SUBAGENTS}")));
        }
        let (depth, number) = (config.depth.unwrap_or(1), config.number.unwrap_or(8));
        subagents = Some(Subagents { depth: depth.min(5), number: number.min(100) });
    }
    Ok(subagents)
}

/// The same as a list of capabilities.
pub(super) fn list(subagents: Option<Subagents>) -> Value {
    let list = subagents.map(|Subagents { depth, number }| {
        json!({ "ref": SUBAGENTS, "config": { "depth": depth, "number": number } })
    });
    Value::from_iter(list)
}
