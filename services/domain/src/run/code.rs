//! Calls that are code of the agent, where it works so.

use crate::{
    CallId, CodeOutput, Command, Effect, EventKind, Gate, Message, QuestionAnswered, Step, ToolCall,
    ToolPlan, ToolResult, ToolVerdict, Usage, UsageReported, rlm::fenced_code,
};

use super::{
    state::{Open, Phase, Run, Standing},
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
                by: plan.and_then(|plan| plan.by.clone()).filter(|_| gate == Gate::Open),
            },
            Some(_) => EventKind::ReplInput { call, iteration: self.tool_calls.saturating_add(1) },
        }
    }

    /// A call came to nothing.
    pub(super) fn not_done(&self, call: CallId, why: String) -> EventKind {
        match self.is_code(&call) {
            false => EventKind::ToolFinished { call, result: ToolResult::error(why) },
            true => EventKind::ReplOutput { call, output: CodeOutput::failed(why) },
        }
    }

    /// Whether an open call is code, and no command of it.
    pub(super) fn is_code(&self, call: &CallId) -> bool {
        self.rlm.is_some() && !self.commands().any(|open| open.call.id == *call)
    }

    fn commands(&self) -> impl Iterator<Item = &Open> {
        let calls = match &self.phase {
            Phase::Acting { calls } => calls.as_slice(),
            Phase::Fresh
            | Phase::Calling { .. }
            | Phase::Compacting(_)
            | Phase::Planning { .. }
            | Phase::Ended(_) => &[],
        };
        calls.iter().filter(|open| open.is_command)
    }

    /// How a command of the code that runs stands.
    pub fn command(&self, id: &CallId) -> Command {
        match self.commands().find(|open| open.call.id == *id).map(|open| open.standing) {
            None => Command::Unknown,
            Some(Standing::Open | Standing::WithClient) => Command::Open,
            Some(Standing::Ended) => Command::Ended,
        }
    }

    /// A command of code runs, waits for a person, if there is one, or ends at once. Those beyond the ceiling are no
    /// calls any more: code may try for ever.
    pub(super) fn command_judged(&mut self, step: &mut Step, command: ToolCall, plan: ToolPlan) {
        let Some((call, question)) = command.id.command() else { return };
        if !self.is_running(&call) || self.command(&command.id) != Command::Unknown {
            return;
        }
        let answer = |why: &str| {
            let answer = Err(text::command_denied(why));
            Effect::AnswerCode { call: call.clone(), question: question.clone(), answer }
        };
        if self.calls_are_made() {
            return step.effects.push(answer(text::TOO_MANY_CALLS));
        }
        let refused = self.command_refused(&plan.verdict);
        let gate = Self::gate(Some(&plan), refused.is_some());
        let ToolPlan { description, cluster, by, verdict, .. } = plan;
        let by = by.filter(|_| gate == Gate::Open);
        let (id, toolset) = (command.id.clone(), Some(REPL.to_owned()));
        self.publish(step, EventKind::ToolStarted { call: command, description, toolset, cluster, gate, by });
        match (refused, verdict) {
            (Some(why), _) => {
                step.effects.push(answer(&why));
                self.publish(step, EventKind::ToolFinished { call: id, result: ToolResult::error(why) });
            }
            (None, ToolVerdict::AskPerson(approval)) => {
                self.publish(step, EventKind::ApprovalRequested { call: id.clone(), approval });
                step.effects.push(self.await_client(&id));
            }
            (None, _) => step.effects.extend(self.open_call(&id).map(|open| open.run())),
        }
    }

    /// Why a command does not run.
    fn command_refused(&self, verdict: &ToolVerdict) -> Option<String> {
        match verdict {
            ToolVerdict::Refuse(why) | ToolVerdict::Forbid(why) => Some(why.clone()),
            ToolVerdict::AskClient => Some(text::NOT_THE_CLIENTS.to_owned()),
            ToolVerdict::AskPerson(approval) if !(self.approvals && self.waits) => {
                Some(approval.reason.clone())
            }
            ToolVerdict::AskPerson(_) | ToolVerdict::Allow => None,
        }
    }

    /// Tells code that its command will not run, if an event says so.
    pub(super) fn tell_code(&self, step: &mut Step, id: &CallId, event: &EventKind) {
        let (EventKind::ToolFinished { result, .. } | EventKind::CallResolved { result, .. }) = event else {
            return;
        };
        let asked = id.command().filter(|_| self.command(id) == Command::Open);
        if let Some((call, question)) = asked {
            let answer = Err(text::command_denied(result.error.as_deref().unwrap_or(text::ENDED)));
            step.effects.push(Effect::AnswerCode { call, question, answer });
        }
    }

    /// Nobody waits any more for what code that has ended wanted to run.
    pub(super) fn end_commands(&mut self, step: &mut Step) {
        let open = self.commands().filter(|open| open.standing != Standing::Ended);
        for call in open.map(|open| open.call.id.clone()).collect::<Vec<_>>() {
            step.effects.push(Effect::StopTool(call.clone()));
            self.publish(step, EventKind::ToolFinished { call, result: ToolResult::error(text::CODE_ENDED) });
        }
    }

    /// The end of code is the end of the run where it gives the answer.
    pub(super) fn code_ended(&mut self, step: &mut Step, call: CallId, output: CodeOutput) {
        if !self.is_running(&call) {
            return;
        }
        self.end_commands(step);
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

    /// A question of code has its answer.
    pub(super) fn question_answered(&mut self, step: &mut Step, answered: QuestionAnswered, usage: Usage) {
        if self.outcome().is_none() {
            self.publish(step, EventKind::QuestionAnswered(answered));
        }
        self.asked(step, usage);
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

#[cfg(test)]
mod tests;
