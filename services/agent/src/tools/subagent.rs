//! The tool `agent`: a part of the work for an agent of its own, with a fresh context.

use domain::{Subagents, ToolCall, ToolPlan, ToolVerdict};
use model::ToolSpec;
use serde::Deserialize;
use serde_json::json;

pub(super) const TOOLSET: &str = "agents";
/// The name of the tool.
pub(super) const NAME: &str = "agent";
/// Characters of a task that its description shows.
const EXCERPT: usize = 200;

/// The tool, where a run may use it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartAgent {
    offered: bool,
}

#[derive(Deserialize)]
struct Arguments {
    task: String,
}

impl StartAgent {
    pub(super) fn new(subagents: Subagents) -> Self {
        Self { offered: subagents.depth > 0 && subagents.number > 0 }
    }

    pub(super) fn spec(self) -> Option<ToolSpec> {
        self.offered.then(|| ToolSpec {
            name: NAME.to_owned(),
            description: "Gives a part of the work to an agent of its own, which has the same tools and begins with \
                nothing but the task; its answer is the result. Use it for parts that need many steps and whose \
                details you do not need. Several calls in one message work at the same time."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "task": {
                        "type": "string",
                        "description": "Everything that the agent must know: what to find out or to do, where, \
                            and what to answer with.",
                    },
                },
                "required": ["task"],
                "additionalProperties": false,
            }),
        })
    }

    pub(super) fn owns(self, name: &str) -> bool {
        self.offered && name == NAME
    }

    pub(super) fn plan(self, call: &ToolCall) -> ToolPlan {
        let (description, verdict) = match task(call) {
            Some(task) => (task.chars().take(EXCERPT).collect(), ToolVerdict::Allow),
            None => {
                (String::new(), ToolVerdict::Refuse("`task` is missing: say what the agent is to do.".into()))
            }
        };
        ToolPlan::own(call, description, Some(TOOLSET), verdict)
    }
}

/// What an agent is to do.
pub(super) fn task(call: &ToolCall) -> Option<String> {
    let Arguments { task } = serde_json::from_str(&call.arguments).ok()?;
    Some(task).filter(|task| !task.trim().is_empty())
}
