//! A client's rules about calls, and what they are about.

use domain::{Denial, Denied, Parameters, Permissions, Rule};
use serde_json::Value;

use crate::agent as wire;

/// The parameters of a call as texts, for rules to be matched with; `None` if its arguments are no JSON object.
pub fn parameters(arguments_json: &str) -> Option<Parameters> {
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments_json) else { return None };
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Some(arguments.into_iter().map(|(name, value)| (name, text(value))).collect())
}

impl From<Permissions> for wire::Permissions {
    fn from(permissions: Permissions) -> Self {
        let rules = |rules: Vec<Rule>| rules.into_iter().map(Into::into).collect();
        Self {
            allow: rules(permissions.allow),
            allow_once: rules(permissions.allow_once),
            deny: permissions.deny.into_iter().map(Into::into).collect(),
            reads: permissions.reads,
        }
    }
}

impl From<wire::Permissions> for Permissions {
    fn from(permissions: wire::Permissions) -> Self {
        let rules = |rules: Vec<wire::CallRule>| rules.into_iter().map(Into::into).collect();
        Self {
            allow: rules(permissions.allow),
            allow_once: rules(permissions.allow_once),
            // A denial of nothing denies nothing.
            deny: permissions.deny.into_iter().filter_map(denial).collect(),
            reads: permissions.reads,
        }
    }
}

impl From<Rule> for wire::CallRule {
    fn from(rule: Rule) -> Self {
        Self { tool: rule.tool, parameters: rule.parameters.into_iter().collect() }
    }
}

impl From<wire::CallRule> for Rule {
    fn from(rule: wire::CallRule) -> Self {
        Self { tool: rule.tool, parameters: rule.parameters.into_iter().collect() }
    }
}

impl From<Denial> for wire::CallDenial {
    fn from(denial: Denial) -> Self {
        let of = match denial.of {
            Denied::Call(id) => wire::call_denial::Of::CallId(id),
            Denied::Calls(rule) => wire::call_denial::Of::Calls(rule.into()),
        };
        Self { of: Some(of), reason: denial.reason.unwrap_or_default() }
    }
}

fn denial(denial: wire::CallDenial) -> Option<Denial> {
    let of = match denial.of? {
        wire::call_denial::Of::CallId(id) => Denied::Call(id),
        wire::call_denial::Of::Calls(rule) => Denied::Calls(rule.into()),
    };
    Some(Denial { of, reason: super::non_empty(denial.reason) })
}
