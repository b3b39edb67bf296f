//! Everything that a model may call, wherever it comes from, behind one gate.

use std::sync::Arc;

use super::{Ask, Decision, Plan, Settings, Tool};
use crate::{
    policy::Effect,
    toolsets::{TemplateTool, mcp::McpTool},
};

/// A tool under the name by which it is called.
#[derive(Clone, Debug)]
pub(crate) struct Callable {
    pub(crate) name: String,
    /// Whether it runs only with the approval of a person.
    pub(crate) needs_approval: bool,
    pub(crate) source: Source,
}

/// Where a tool comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Builtin(&'static Tool),
    Template(Arc<TemplateTool>),
    Mcp(Arc<McpTool>),
}

impl Callable {
    pub(crate) fn toolset(&self) -> &str {
        match &self.source {
            Source::Builtin(tool) => tool.toolset.name(),
            Source::Template(tool) => &tool.toolset,
            Source::Mcp(tool) => tool.server(),
        }
    }

    pub(crate) fn description(&self) -> &str {
        match &self.source {
            Source::Builtin(tool) => tool.description,
            Source::Template(tool) => &tool.description,
            Source::Mcp(tool) => &tool.description,
        }
    }

    /// The JSON Schema of its arguments.
    pub(crate) fn schema(&self) -> serde_json::Value {
        match &self.source {
            Source::Builtin(tool) => tool.schema(),
            Source::Template(tool) => tool.schema(),
            Source::Mcp(tool) => tool.schema(),
        }
    }

    /// Plans a call. What is wrong with it is part of the plan, so that the model can correct itself.
    pub(crate) fn plan(&self, settings: &Settings, arguments_json: &str) -> Plan {
        let plan = match &self.source {
            Source::Builtin(tool) => tool.plan(settings, arguments_json),
            Source::Template(tool) => tool.plan(settings, arguments_json),
            Source::Mcp(tool) => tool.plan(settings, arguments_json),
        };
        match plan.decision {
            Decision::Allow(work) if self.needs_approval && !settings.saved.tools.contains(&self.name) => {
                let ask = Ask {
                    reason: format!("`{}` runs only with the approval of a person.", self.name),
                    refusal: self.unavailable(),
                    prefixes: vec![self.name.clone()],
                    work,
                };
                Plan { effect: Effect::Mutation, decision: Decision::Ask(ask), ..plan }
            }
            Decision::Allow(_) if self.needs_approval => Plan { effect: Effect::Mutation, ..plan },
            Decision::Allow(_) | Decision::Ask(_) | Decision::Deny(_) => plan,
        }
    }

    /// What the model is told while nobody can be asked.
    fn unavailable(&self) -> String {
        format!(
            "refused: `{}` runs only with the approval of a person, which is not available here. It was not run and \
             waits for nobody.",
            self.name
        )
    }
}
