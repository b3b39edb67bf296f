//! Calls that never run: what their plans or the run itself forbid.

use crate::{AgentId, Gate, ToolCall, ToolPlan, ToolVerdict};

use super::{state::Run, text};

impl Run {
    /// Why a call must not run; `None` if it may. `before` is the number of calls of its batch before it.
    pub(super) fn refusal(&self, call: &ToolCall, plan: Option<&ToolPlan>, before: u32) -> Option<String> {
        let Some(plan) = plan else { return Some(text::NOT_PLANNED.to_owned()) };
        match &plan.verdict {
            // An agent that ends with its run cannot come back for the result.
            ToolVerdict::AskClient if !self.waits && self.agent != AgentId::main() => {
                return Some(text::main_calls());
            }
            ToolVerdict::AskClient => return None,
            ToolVerdict::AskPerson(approval) if !self.approvals => {
                return Some(match self.main_asks {
                    true => text::main_asks(&approval.reason),
                    false => text::nobody_to_ask(&approval.reason),
                });
            }
            // A person may want the same change again.
            ToolVerdict::AskPerson(_) => {}
            ToolVerdict::Refuse(reason) | ToolVerdict::Forbid(reason) => return Some(reason.clone()),
            ToolVerdict::Allow => {
                let made = || self.made.contains(&(call.name.clone(), call.arguments.clone()));
                if !self.keeps_files && made() {
                    return Some(text::REPEATED.to_owned());
                }
            }
        }
        let so_far = self.tool_calls.saturating_add(before);
        (so_far >= self.limits.tool_calls).then(|| text::TOO_MANY_CALLS.to_owned())
    }

    /// Whether a call runs that has this plan and is refused or not.
    pub(super) fn gate(plan: Option<&ToolPlan>, refused: bool) -> Gate {
        match plan.map(|plan| &plan.verdict) {
            Some(ToolVerdict::Forbid(_)) => Gate::Forbidden,
            Some(ToolVerdict::AskClient | ToolVerdict::AskPerson(_)) if !refused => Gate::Waits,
            Some(
                ToolVerdict::AskClient
                | ToolVerdict::AskPerson(_)
                | ToolVerdict::Allow
                | ToolVerdict::Refuse(_),
            )
            | None => Gate::Open,
        }
    }
}
