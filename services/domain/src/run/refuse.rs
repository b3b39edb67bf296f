//! Calls that never run: what their plans or the run itself forbid.

use crate::{ToolCall, ToolPlan, ToolVerdict};

use super::{state::Run, text};

impl Run {
    /// Why a call must not run; `None` if it may. `before` is the number of calls of its batch before it.
    pub(super) fn refusal(&self, call: &ToolCall, plan: Option<&ToolPlan>, before: u32) -> Option<String> {
        let Some(plan) = plan else { return Some(text::NOT_PLANNED.to_owned()) };
        if let ToolVerdict::Refuse(reason) = &plan.verdict {
            return Some(reason.clone());
        }
        if plan.verdict == ToolVerdict::AskClient {
            return None;
        }
        if self.made.contains(&(call.name.clone(), call.arguments.clone())) {
            return Some(text::REPEATED.to_owned());
        }
        let so_far = self.tool_calls.saturating_add(before);
        (so_far >= self.limits.tool_calls).then(|| text::TOO_MANY_CALLS.to_owned())
    }
}
