//! Everything that a model may call, wherever it comes from, behind one gate.

use std::sync::Arc;

use super::{Ask, Decision, Plan, Profile, Settings, Tool};
use crate::{
    policy::Effect,
    toolsets::{HttpTool, Summarize, TemplateTool, mcp::McpTool},
};

/// A tool under the name by which it is called.
#[derive(Clone, Debug)]
pub(crate) struct Callable {
    pub(crate) name: String,
    /// Whether it runs only with the approval of a person.
    pub(crate) needs_approval: bool,
    /// Whether a model may call it only once it follows a runbook.
    pub(crate) restricted: bool,
    /// What becomes of long results, before a model reads them.
    pub(crate) summarize: Option<Arc<Summarize>>,
    pub(crate) origin: Origin,
}

/// Where a tool comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Builtin(&'static Tool),
    Template(Arc<TemplateTool>),
    Http(Arc<HttpTool>),
    Mcp(Arc<McpTool>),
}

impl Callable {
    /// Whose tool it is.
    pub(crate) fn profile(&self) -> Profile {
        match &self.origin {
            Origin::Builtin(tool) => tool.toolset.profile(),
            Origin::Template(_) | Origin::Http(_) | Origin::Mcp(_) => Profile::default(),
        }
    }

    pub(crate) fn toolset(&self) -> &str {
        match &self.origin {
            Origin::Builtin(tool) => tool.toolset.name(),
            Origin::Template(tool) => &tool.toolset,
            Origin::Http(tool) => tool.toolset(),
            Origin::Mcp(tool) => tool.server(),
        }
    }

    pub(crate) fn description(&self) -> &str {
        match &self.origin {
            Origin::Builtin(tool) => tool.description,
            Origin::Template(tool) => &tool.description,
            Origin::Http(tool) => &tool.description,
            Origin::Mcp(tool) => &tool.description,
        }
    }

    /// The JSON Schema of its arguments.
    pub(crate) fn schema(&self) -> serde_json::Value {
        match &self.origin {
            Origin::Builtin(tool) => tool.schema(),
            Origin::Template(tool) => tool.schema(),
            Origin::Http(tool) => tool.schema(),
            Origin::Mcp(tool) => tool.schema(),
        }
    }

    /// Plans a call. What is wrong with it is part of the plan, so that the model can correct itself.
    pub(crate) fn plan(&self, settings: &Settings, arguments_json: &str) -> Plan {
        let plan = match &self.origin {
            Origin::Builtin(tool) => tool.plan(settings, arguments_json),
            Origin::Template(tool) => tool.plan(settings, arguments_json),
            Origin::Http(tool) => tool.plan(settings, arguments_json),
            Origin::Mcp(tool) => tool.plan(settings, arguments_json),
        };
        match plan.decision {
            Decision::Allow(work) if self.needs_approval && !settings.saved.whole => {
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
