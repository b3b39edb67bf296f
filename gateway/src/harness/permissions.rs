//! The rules that come with a question.

use std::collections::BTreeMap;

use domain::{Denial, Denied, Permissions, Rule};
use serde::Deserialize;
use serde_json::Value;
use wire::agent::{Decision, Message, decision};

use super::refusal::Refusal;

/// Rules that one request may have.
const MOST: usize = 256;
/// What the model reads of an open call that the client denies without a reason.
const DENIED: &str = "Not run: the user refused this call.";

/// As clients send them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default)]
    allowlist: Vec<GivenRule>,
    #[serde(default)]
    allow_once: Vec<GivenRule>,
    #[serde(default)]
    deny: Vec<GivenDenial>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum GivenRule {
    /// The tool, with any parameters.
    Tool(String),
    Rule {
        tool: String,
        params: Option<BTreeMap<String, Value>>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum GivenDenial {
    #[serde(rename_all = "camelCase")]
    Call {
        tool_call_id: String,
        reason: Option<String>,
    },
    Tool(String),
    Rule {
        tool: String,
        params: Option<BTreeMap<String, Value>>,
        reason: Option<String>,
    },
}

/// The rules. Without any object, whatever only reads runs unasked.
pub(super) fn read(given: Option<Value>) -> Result<Permissions, Refusal> {
    let Some(given) = given else { return Ok(Permissions { reads: true, ..Permissions::default() }) };
    let given: Given =
        serde_json::from_value(given).map_err(|error| Refusal::bad(&format!("permissions: {error}")))?;
    if given.allowlist.len() + given.allow_once.len() + given.deny.len() > MOST {
        return Err(Refusal::bad(&format!("permissions: more than {MOST} rules")));
    }
    let deny: Vec<Denial> = given.deny.into_iter().map(Denial::from).collect();
    if let Some(parameter) = deny.iter().find_map(unknown) {
        let why =
            format!("permissions: deny: the pattern for `{parameter}` has a form that is not known here");
        return Err(Refusal::bad(&why));
    }
    let rules = |rules: Vec<GivenRule>| rules.into_iter().map(Rule::from).collect();
    Ok(Permissions { allow: rules(given.allowlist), allow_once: rules(given.allow_once), deny, reads: false })
}

/// What the rules say of calls that the history leaves open.
pub(super) fn denials(permissions: &Permissions, history: &[Message]) -> Vec<Decision> {
    let answered = |id: &str| history.iter().any(|message| message.tool_call_id == id);
    let open = history.iter().flat_map(|message| &message.tool_calls).filter(|call| !answered(&call.id));
    let denied = open.filter_map(|call| {
        let denial = permissions.deny.iter().find(|denial| denial.of.names(&call.id))?;
        let why = denial.reason.clone().unwrap_or_else(|| DENIED.to_owned());
        let decision = Some(decision::Decision::Denial(why));
        Some(Decision { call_id: call.id.clone(), decision, ..Decision::default() })
    });
    denied.collect()
}

/// The first parameter of which nobody could tell what is denied. A rule that allows may have such patterns: clients
/// send back what they derived from calls, and it allows what it spells out.
fn unknown(denial: &Denial) -> Option<&str> {
    match &denial.of {
        Denied::Call(_) => None,
        Denied::Calls(rule) => rule.unknown(),
    }
}

impl From<GivenRule> for Rule {
    fn from(given: GivenRule) -> Self {
        match given {
            GivenRule::Tool(tool) => Self { tool, parameters: BTreeMap::new() },
            GivenRule::Rule { tool, params } => rule(tool, params),
        }
    }
}

impl From<GivenDenial> for Denial {
    fn from(given: GivenDenial) -> Self {
        match given {
            GivenDenial::Call { tool_call_id, reason } => Self { of: Denied::Call(tool_call_id), reason },
            GivenDenial::Tool(tool) => Self { of: Denied::Calls(rule(tool, None)), reason: None },
            GivenDenial::Rule { tool, params, reason } => {
                Self { of: Denied::Calls(rule(tool, params)), reason }
            }
        }
    }
}

fn rule(tool: String, params: Option<BTreeMap<String, Value>>) -> Rule {
    let pattern = |value| match value {
        Value::String(pattern) => pattern,
        other => other.to_string(),
    };
    let parameters = params.unwrap_or_default().into_iter().map(|(name, value)| (name, pattern(value)));
    Rule { tool, parameters: parameters.collect() }
}
