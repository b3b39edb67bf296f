//! Calls that are code of the agent, where it works so.

use crate::{
    CallId, CodeOutput, EventKind, Gate, Message, Step, ToolCall, ToolPlan, ToolResult, Usage, UsageReported,
    rlm::fenced_code,
};

use super::{
    state::{Run, Standing},
    text,
};

/// The tool that runs code.
const REPL: &str = "repl";
/// Why a run ends whose code has answered.
const FINAL: &str = "final";

impl Run {
    /// A call begins.
    pub(super) fn begun(&self, call: ToolCall, plan: Option<&ToolPlan>, gate: Gate) -> EventKind {
        match self.rlm {
            None => EventKind::ToolStarted {
                call,
                description: plan.map_or_else(String::new, |plan| plan.description.clone()),
                toolset: plan.and_then(|plan| plan.toolset.clone()),
                cluster: plan.and_then(|plan| plan.cluster.clone()),
                gate,
            },
            Some(_) => EventKind::ReplInput { call, iteration: self.tool_calls.saturating_add(1) },
        }
    }

    /// A call came to nothing.
    pub(super) fn not_done(&self, call: CallId, why: String) -> EventKind {
        match self.rlm {
            None => EventKind::ToolFinished { call, result: ToolResult::error(why) },
            Some(_) => EventKind::ReplOutput { call, output: CodeOutput::failed(why) },
        }
    }

    /// The end of code is the end of the run where it gives the answer.
    pub(super) fn code_ended(&mut self, step: &mut Step, call: CallId, output: CodeOutput) {
        if !self.is_running(&call) {
            return;
        }
        let before = self.running_ids();
        let answer = output.answer.clone();
        self.publish(step, EventKind::ReplOutput { call, output });
        match answer {
            None => self.run_next(step, &before),
            Some(answer) => {
                self.stop_tools(step, text::ENDED);
                self.count_tools(step);
                self.answered(step, answer, FINAL.to_owned(), None);
            }
        }
    }

    /// What code spends is spent by its run.
    pub(super) fn asked(&mut self, step: &mut Step, usage: Usage) {
        if self.outcome().is_none() {
            let (totals, context) = (self.totals.plus(usage), self.context);
            self.publish(step, EventKind::UsageReported(UsageReported { usage, totals, context }));
        }
    }

    /// Some models write their code instead of calling the tool.
    pub(super) fn read_code(&self, message: &mut Message, number: u32) {
        if self.rlm.is_none() || !message.tool_calls.is_empty() {
            return;
        }
        if let Some(code) = fenced_code(&message.joined_text()) {
            let id = CallId::new(format!("code_{number}"));
            let arguments = format!("{{\"code\":{}}}", text::json_string(&code));
            message.tool_calls.push(ToolCall { id, name: REPL.to_owned(), arguments });
        }
    }

    pub(super) fn close_code(&mut self, id: &CallId, output: &CodeOutput) {
        let Some(open) = self.open_call(id) else { return };
        open.standing = Standing::Ended;
        let call = open.call.clone();
        self.recoveries = 0;
        self.answer(&call, Message::tool(call.id.clone(), &call.name, text::code_message(output)));
    }
}
