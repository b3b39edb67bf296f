//! What the model is told: the client's fields as markdown.

use domain::{Message, Role};
use serde_json::{json, value::RawValue};

use super::super::{
    history,
    raw::{self, Members},
};

/// Characters of what an earlier tool returned.
const LONGEST_OUTPUT: usize = 10_000;
const CUT: &str = "\n\n[TRUNCATED]";

/// Something that is wrong, as a monitoring system reports it.
#[derive(Debug)]
pub(super) struct Issue {
    pub(super) source: String,
    pub(super) instance: Option<String>,
    pub(super) title: String,
    pub(super) description: String,
    /// What it is about.
    pub(super) subject: String,
    /// What else is known, as a list.
    pub(super) context: String,
}

/// What an earlier investigation found.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    pub(super) result: Option<String>,
    pub(super) tools: Vec<Used>,
}

/// A tool call of an earlier investigation.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) output: String,
}

impl Issue {
    pub(super) fn markdown(&self) -> String {
        let Self { source, instance, title, description, subject, context } = self;
        let from = match instance {
            Some(instance) => format!("{source} ({instance})"),
            None => source.clone(),
        };
        let mut text = format!("Investigate this issue: {title}\n\n{description}");
        for (heading, body) in [("Subject", subject), ("Context", context)] {
            if !body.is_empty() {
                text.push_str(&format!("\n\n## {heading}\n\n{body}"));
            }
        }
        format!("{text}\n\nReported by {from}.")
    }
}

/// A question about a workload, and what to heed.
pub(super) fn workload(ask: &str, resource: &str, instructions: &[String]) -> String {
    let mut text = format!("{ask}\n\n## Workload\n\n{resource}");
    if !instructions.is_empty() {
        text.push_str(&format!("\n\n## Instructions\n\n{}", list(instructions)));
    }
    text
}

/// Stands where a template speaks of earlier alerts, which the agent adds to the question.
pub(super) const ALERTS: &str = "(The alerts are attached to the question.)";

/// An earlier investigation as the beginning of the conversation; the client does not get it back.
pub(super) fn earlier(question: String, found: Earlier) -> [Message; 2] {
    let mut text = found.result.unwrap_or_else(|| "(The result was not kept.)".to_owned());
    for Used { name, description, output } in found.tools {
        let output = match output.char_indices().nth(LONGEST_OUTPUT) {
            Some((end, _)) => format!("{}{CUT}", output.get(..end).unwrap_or_default()),
            None => output,
        };
        text.push_str(&format!("\n\n## {name}: {description}\n\n{output}"));
    }
    [history::unsent(Role::User, question), history::unsent(Role::Assistant, text)]
}

/// A list in markdown.
pub(super) fn list(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let items = items.into_iter().map(|item| format!("- {}", item.as_ref().trim().replace('\n', "\n  ")));
    items.collect::<Vec<_>>().join("\n")
}

/// What names a resource, in one line; what else is said of it, as a list.
pub(super) fn resource(mut members: Members<'_>) -> String {
    let Some(name) = take(&mut members, "name") else { return self::members(members) };
    let mut line = match take(&mut members, "kind") {
        Some(kind) => format!("{kind} {name}"),
        None => name,
    };
    if let Some(namespace) = take(&mut members, "namespace") {
        line.push_str(&format!(" in namespace {namespace}"));
    }
    [line, self::members(members)].join("\n\n").trim_end().to_owned()
}

/// A text among the members; empty if there is none.
pub(super) fn member(members: &Members<'_>, name: &str) -> String {
    members.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}

/// Takes a text out.
fn take(members: &mut Members<'_>, name: &str) -> Option<String> {
    let text = serde_json::from_str(members.get(name)?.get()).ok()?;
    members.remove(name);
    Some(text)
}

/// The members of an object as a list.
pub(super) fn members(members: Members<'_>) -> String {
    list(raw::in_order(members).into_iter().map(|(key, value)| format!("{key}: {}", plain(value))))
}

/// A text as it is, anything else as JSON.
pub(super) fn plain(value: &RawValue) -> String {
    serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// The `response_format` of a health check.
pub(super) fn verdict() -> String {
    let schema = json!({
        "type": "object",
        "properties": {
            "workload_healthy": {"type": "boolean", "description": "Whether the workload does its work now."},
            "root_cause_summary": {
                "type": "string",
                "description": "What is wrong and why, with the evidence, in markdown; or what was looked at, if nothing is.",
            },
        },
        "required": ["workload_healthy", "root_cause_summary"],
        "additionalProperties": false,
    });
    let schema = json!({"name": "WorkloadHealth", "strict": true, "schema": schema});
    json!({"type": "json_schema", "json_schema": schema}).to_string()
}
