//! Tools that are for whoever follows a runbook.

use std::{collections::HashSet, sync::Arc};

use domain::{ToolCall, ToolPlan, ToolVerdict};

/// Names of the tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restricted(Arc<HashSet<String>>);

impl FromIterator<String> for Restricted {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        Self(Arc::new(names.into_iter().collect()))
    }
}

impl Restricted {
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }

    pub(super) fn owns(&self, call: &ToolCall) -> bool {
        self.0.contains(&call.name)
    }

    /// What a model is told that follows none.
    pub(super) fn plan(call: &ToolCall) -> ToolPlan {
        let why = format!(
            "`{}` is for steps of a runbook: fetch the runbook that fits first, and call it only if that says so.",
            call.name
        );
        ToolPlan::own(call, call.name.clone(), None, ToolVerdict::Refuse(why))
    }
}
