//! What each input leads to. Every change of state goes through an event.

use crate::{
    AgentId, AssistantMessage, CallId, Ceiling, Closing, Effect, EventKind, FailureCode, Gate, Input,
    Message, MessageId, ModelCalled, ModelReply, Role, Settlement, Step, ToolCall, ToolPlan, ToolResult,
    ToolVerdict, UsageReported,
};

use super::{
    state::{Open, Phase, Run, Standing},
    text,
};

/// Calls that a run makes at most to get its answer into the form that was asked for.
const FORM_CALLS: u32 = 2;

/// How often a run is taken over that does not come further.
const MOST_RECOVERIES: u32 = 3;

const OUT_OF_TIME: Option<Closing> = Some(Closing::Ceiling(Ceiling::WallTime));

impl Run {
    /// Takes an input and says what follows. What no longer fits leads to nothing.
    pub fn step(&mut self, input: Input) -> Step {
        let mut step = Step::default();
        match input {
            Input::Begin => self.begin(&mut step),
            Input::TextDelta { message, text } => {
                if self.is_calling(&message) {
                    self.publish(&mut step, EventKind::TextDelta { message, text });
                }
            }
            Input::ThinkingDelta { message, text } => {
                if self.is_calling(&message) {
                    self.publish(&mut step, EventKind::ThinkingDelta { message, text });
                }
            }
            Input::ModelReplied { message, reply } => self.replied(&mut step, message, reply),
            Input::ModelFailed { message, code, text } => {
                if self.is_compacting(&message) {
                    self.not_compacted(&mut step, text, false);
                } else if self.is_calling(&message) {
                    self.end(&mut step, EventKind::RunFailed { code, message: text });
                }
            }
            Input::ModelLost { message } => self.lost(&mut step, &message),
            Input::Planned(plans) => self.planned(&mut step, &plans),
            Input::ToolOutput { call, stream, text } => {
                if self.is_running(&call) {
                    let event = match self.is_code(&call) {
                        true => EventKind::ReplProgress { call, stream, text },
                        false => EventKind::ToolOutput { call, stream, text },
                    };
                    self.publish(&mut step, event);
                }
            }
            Input::Placed { call, placement } => {
                if self.is_running(&call) {
                    self.publish(&mut step, EventKind::CallPlaced { call: call.clone(), placement });
                    step.effects.push(Effect::SendCall(call));
                }
            }
            Input::ToolFinished { call, result } => self.tool_finished(&mut step, call, result),
            Input::CodeEnded { call, output } => self.code_ended(&mut step, call, output),
            Input::Asked(usage) => self.asked(&mut step, usage),
            Input::QuestionAnswered(answered, usage) => self.question_answered(&mut step, answered, usage),
            Input::CommandJudged { command, plan } => self.command_judged(&mut step, command, plan),
            Input::Settled { call, settlement } => self.settled(&mut step, &call, settlement),
            Input::Steered(steered) => self.steered(&mut step, steered),
            Input::HandedOver => self.hand_over(&mut step),
            Input::TakenOver => self.taken_over(&mut step),
            Input::TimeUp => self.time_up(&mut step),
            Input::Cancelled { reason } => {
                self.stop(&mut step, text::STOPPED, EventKind::RunCancelled { reason });
            }
            Input::Broken { text } => {
                let failed = EventKind::RunFailed { code: FailureCode::Internal, message: text };
                self.stop(&mut step, text::ENDED, failed);
            }
        }
        step
    }

    /// Takes inputs, one after the other.
    pub fn step_all(&mut self, inputs: impl IntoIterator<Item = Input>) -> Step {
        let mut step = Step::default();
        inputs.into_iter().for_each(|input| step.then(self.step(input)));
        step
    }

    pub(super) fn publish(&mut self, step: &mut Step, event: EventKind) {
        self.apply(&event);
        step.events.push(event);
    }

    fn begin(&mut self, step: &mut Step) {
        if self.phase == Phase::Fresh && !self.messages.is_empty() {
            step.effects.push(Effect::ArmTimer(self.limits.wall_time));
            self.ask(step, false);
        }
    }

    /// Asks the model, without tools if the time is up or another ceiling is met.
    pub(super) fn ask_now(&mut self, step: &mut Step, time_is_up: bool) {
        if !self.fits() {
            return self.end(step, self.too_long());
        }
        let number = self.steps.saturating_add(1);
        let last = number >= self.limits.steps;
        let ceiling = time_is_up.then_some(Ceiling::WallTime).or_else(|| self.ceiling());
        let ceiling = ceiling.or(last.then_some(Ceiling::Steps));
        self.call(step, number, 1, ceiling.map(Closing::Ceiling));
    }

    fn call(&mut self, step: &mut Step, number: u32, attempt: u32, closing: Option<Closing>) {
        let message = MessageId::new(self.own(&format!("msg_{number}_{attempt}")));
        let called = ModelCalled { message, step: number, attempt, closing };
        self.publish(step, EventKind::ModelCalled(called.clone()));
        step.effects.push(self.call_model(&called));
    }

    fn is_calling(&self, message: &MessageId) -> bool {
        matches!(&self.phase, Phase::Calling { called, .. } if called.message == *message)
    }

    pub(super) fn is_running(&self, call: &CallId) -> bool {
        match &self.phase {
            Phase::Acting { calls } => self.running(calls).any(|running| running.call.id == *call),
            Phase::Fresh
            | Phase::Calling { .. }
            | Phase::Compacting(_)
            | Phase::Planning { .. }
            | Phase::Ended(_) => false,
        }
    }

    fn is_open(&self, call: &CallId) -> bool {
        matches!(&self.phase, Phase::Acting { calls }
            if calls.iter().any(|open| open.call.id == *call && open.standing == Standing::Open))
    }

    fn replied(&mut self, step: &mut Step, id: MessageId, reply: ModelReply) {
        if self.is_compacting(&id) {
            return self.summarized(step, &reply);
        }
        let Phase::Calling { called, .. } = &self.phase else { return };
        if called.message != id {
            return;
        }
        let ModelReply { mut message, usage, mut finish_reason, in_form, exchange } = reply;
        let (number, attempt, closing) = (called.step, called.attempt, called.closing);
        if closing.is_some() {
            // Calls that nobody offered would stay without results, and providers refuse such a history.
            message.tool_calls.clear();
        }
        if closing.is_none() {
            self.read_code(&mut message, number);
        }
        self.make_ids_unique(&mut message.tool_calls);
        let calls = message.tool_calls.clone();
        let counts = !self.structured || !calls.is_empty() || in_form;
        let totals = self.totals.plus(usage);
        let context = self.context_with(Some(&message).filter(|_| counts));
        self.publish(step, EventKind::UsageReported(UsageReported { usage, totals, context }));
        if !counts {
            return self.ask_for_the_form(step, id, number, attempt);
        }
        let mut answer = message.joined_text();
        if let Some(Closing::Ceiling(ceiling)) = closing {
            ceiling.name().clone_into(&mut finish_reason);
            if answer.trim().is_empty() {
                answer = text::found_nothing_to_say(&finish_reason, self.tool_calls);
            }
        }
        let exchange = Box::new(exchange);
        let assistant = AssistantMessage { id, message, finish_reason: finish_reason.clone(), exchange };
        self.publish(step, EventKind::AssistantMessage(assistant));
        if calls.is_empty() {
            self.answered(step, answer, finish_reason, closing);
        } else {
            step.effects.push(Effect::Plan(calls));
        }
    }

    fn ask_for_the_form(&mut self, step: &mut Step, message: MessageId, number: u32, attempt: u32) {
        let reason = text::NOT_IN_FORM.to_owned();
        self.publish(step, EventKind::AttemptAbandoned { message, reason });
        if self.form_calls < FORM_CALLS {
            self.call(step, number, attempt.saturating_add(1), Some(Closing::Form));
        } else {
            let message = text::NEVER_IN_FORM.to_owned();
            self.end(step, EventKind::RunFailed { code: FailureCode::MalformedReply, message });
        }
    }

    /// An id that no other agent of the run has.
    pub(super) fn own(&self, id: &str) -> String {
        if self.agent == AgentId::main() { id.to_owned() } else { format!("{id}_{}", self.agent) }
    }

    /// Some models count their calls from zero in each message.
    fn make_ids_unique(&self, calls: &mut [ToolCall]) {
        let mut taken = self.call_ids.clone();
        for call in calls {
            let given = self.own(call.id.as_str());
            call.id = CallId::new(&given);
            for number in 2_u32.. {
                if taken.insert(call.id.clone()) {
                    break;
                }
                call.id = CallId::new(format!("{given}_{number}"));
            }
        }
    }

    /// Whatever the next process finds in flight has lost nobody.
    fn hand_over(&mut self, step: &mut Step) {
        match self.phase {
            Phase::Fresh | Phase::Ended(_) => {}
            Phase::Calling { .. } | Phase::Compacting(_) | Phase::Planning { .. } | Phase::Acting { .. } => {
                self.publish(step, EventKind::RunHandedOver);
            }
        }
    }

    /// Goes on where another process was lost; not for ever, since what is in flight may be what loses them.
    fn taken_over(&mut self, step: &mut Step) {
        let in_flight = match &self.phase {
            Phase::Ended(_) => return,
            Phase::Fresh => return self.begin(step),
            Phase::Calling { .. } | Phase::Compacting(_) | Phase::Planning { .. } | Phase::Acting { .. } => {
                self.in_flight()
            }
        };
        self.publish(step, EventKind::RunRecovered);
        if self.recoveries > MOST_RECOVERIES {
            let message = text::SEALED.to_owned();
            let failed = EventKind::RunFailed { code: FailureCode::Internal, message };
            return self.stop(step, text::ENDED, failed);
        }
        for effect in in_flight {
            match effect {
                Effect::CallModel { message, .. } => self.lost(step, &message),
                other => step.effects.push(other),
            }
        }
    }

    /// Asks again: what was said so far does not count.
    fn lost(&mut self, step: &mut Step, message: &MessageId) {
        if self.is_compacting(message) {
            return step.effects.push(Effect::Summarize { message: message.clone() });
        }
        let Phase::Calling { called, .. } = &self.phase else { return };
        if called.message != *message {
            return;
        }
        let ModelCalled { step: number, attempt, closing, .. } = *called;
        let reason = "the process that made the call was lost".to_owned();
        self.publish(step, EventKind::AttemptAbandoned { message: message.clone(), reason });
        self.call(step, number, attempt.saturating_add(1), closing);
    }

    fn planned(&mut self, step: &mut Step, plans: &[ToolPlan]) {
        let Phase::Planning { calls } = &self.phase else { return };
        let calls = calls.clone();
        let plan = |call: &CallId| plans.iter().find(|plan| plan.call == *call);
        let refusals: Vec<_> = calls
            .iter()
            .zip(0..)
            .filter_map(|(call, before)| Some((call.id.clone(), self.refusal(call, plan(&call.id), before)?)))
            .collect();
        for call in calls {
            let found = plan(&call.id);
            let gate = Self::gate(found, refusals.iter().any(|(refused, _)| *refused == call.id));
            let begun = self.begun(call, found, gate);
            self.publish(step, begun);
        }
        for (call, reason) in refusals {
            let refused = self.not_done(call, reason);
            self.publish(step, refused);
        }
        for plan in plans.iter().filter(|plan| self.is_open(&plan.call)).cloned().collect::<Vec<_>>() {
            let ToolPlan { call, verdict, .. } = plan;
            if self.waits && matches!(verdict, ToolVerdict::AskClient | ToolVerdict::AskPerson(_)) {
                step.effects.push(self.await_client(&call));
            }
            match verdict {
                ToolVerdict::AskClient => self.publish(step, EventKind::ClientToolRequested { call }),
                ToolVerdict::AskPerson(approval) => {
                    self.publish(step, EventKind::ApprovalRequested { call, approval });
                }
                ToolVerdict::Allow | ToolVerdict::Refuse(_) | ToolVerdict::Forbid(_) => {}
            }
        }
        self.run_next(step, &[]);
    }

    fn tool_finished(&mut self, step: &mut Step, call: CallId, result: ToolResult) {
        if !self.is_running(&call) {
            return;
        }
        let before = self.running_ids();
        let finished = match self.is_code(&call) {
            true => {
                self.end_commands(step);
                self.not_done(call, result.error.unwrap_or_default())
            }
            false => EventKind::ToolFinished { call, result },
        };
        self.publish(step, finished);
        self.run_next(step, &before);
    }

    fn settled(&mut self, step: &mut Step, id: &CallId, settlement: Settlement) {
        let Some(call) = self.waiting(id) else { return };
        let before = self.running_ids();
        let refused = |why| EventKind::ToolFinished { call: id.clone(), result: ToolResult::error(why) };
        let event = match settlement {
            Settlement::Allowed(permission) => EventKind::CallAllowed { call: id.clone(), permission },
            Settlement::Denied(why) => refused(why),
            Settlement::Expired => refused(text::NO_DECISION_IN_TIME.to_owned()),
            Settlement::Done(data) => {
                EventKind::CallResolved { call, result: ToolResult::success(data), by_client: true }
            }
        };
        step.effects.push(Effect::StopTool(id.clone()));
        self.tell_code(step, id, &event);
        self.publish(step, event);
        self.run_next(step, &before);
    }

    /// The call, if it waits for the client in this run.
    fn waiting(&self, id: &CallId) -> Option<ToolCall> {
        let Phase::Acting { calls } = &self.phase else { return None };
        let waits = |open: &&Open| open.call.id == *id && open.standing == Standing::WithClient;
        calls.iter().find(waits).map(|open| open.call.clone())
    }

    pub(super) fn running_ids(&self) -> Vec<CallId> {
        match &self.phase {
            Phase::Acting { calls } => self.running(calls).map(|open| open.call.id.clone()).collect(),
            Phase::Fresh
            | Phase::Calling { .. }
            | Phase::Compacting(_)
            | Phase::Planning { .. }
            | Phase::Ended(_) => Vec::new(),
        }
    }

    /// Starts the calls that have room now, or asks the model if all have ended.
    pub(super) fn run_next(&mut self, step: &mut Step, already: &[CallId]) {
        let Phase::Acting { calls } = &self.phase else { return };
        let starting = self.running(calls).filter(|open| !already.contains(&open.call.id));
        step.effects.extend(starting.map(Open::run));
        if calls.iter().any(|open| open.standing == Standing::Open) {
            return;
        }
        let with_client = calls.iter().any(|open| open.standing == Standing::WithClient);
        if with_client && self.waits {
            return;
        }
        self.count_tools(step);
        if with_client {
            self.end(step, EventKind::RunSuspended);
        } else {
            self.ask(step, false);
        }
    }

    pub(super) fn count_tools(&mut self, step: &mut Step) {
        // Before the first model call there is nothing to report.
        if self.steps > 0 {
            let report = self.report();
            self.publish(step, report);
        }
    }

    /// First the work ends and the answer is asked for; the second time the run ends.
    fn time_up(&mut self, step: &mut Step) {
        match &self.phase {
            Phase::Calling { called, .. } if called.closing.is_some() => return self.give_up(step),
            Phase::Compacting(started) if started.time_is_up => return self.give_up(step),
            Phase::Compacting(_) => {
                step.effects.push(Effect::StopModel);
                self.not_compacted(step, text::OUT_OF_TIME.to_owned(), true);
            }
            Phase::Calling { called, .. } => {
                let ModelCalled { message, step: number, attempt, .. } = called.clone();
                let reason = text::OUT_OF_TIME.to_owned();
                step.effects.push(Effect::StopModel);
                self.publish(step, EventKind::AttemptAbandoned { message, reason });
                self.call(step, number, attempt.saturating_add(1), OUT_OF_TIME);
            }
            Phase::Planning { calls } => {
                step.effects.push(Effect::StopPlan);
                for call in calls.clone() {
                    let begun = self.begun(call, None, Gate::default());
                    self.publish(step, begun);
                }
                self.answer_instead(step);
            }
            Phase::Acting { .. } => self.answer_instead(step),
            Phase::Fresh | Phase::Ended(_) => return,
        }
        step.effects.push(Effect::ArmTimer(self.limits.answer_time));
    }

    fn answer_instead(&mut self, step: &mut Step) {
        self.stop_tools(step, text::OUT_OF_TIME);
        self.count_tools(step);
        self.ask(step, true);
    }

    /// The answer took too long: what was said so far is better than nothing.
    fn give_up(&mut self, step: &mut Step) {
        let said = match &self.phase {
            Phase::Calling { called, partial } => Some((called.message.clone(), partial.clone())),
            Phase::Compacting(_)
            | Phase::Fresh
            | Phase::Planning { .. }
            | Phase::Acting { .. }
            | Phase::Ended(_) => None,
        };
        let said = said.filter(|(_, partial)| !partial.trim().is_empty() && !self.structured);
        let Some((id, answer)) = said else {
            let message = text::NO_ANSWER_IN_TIME.to_owned();
            let failed = EventKind::RunFailed { code: FailureCode::Deadline, message };
            return self.stop(step, text::OUT_OF_TIME, failed);
        };
        let reason = Ceiling::WallTime.name().to_owned();
        let message = Message::text(Role::Assistant, &answer);
        step.effects.push(Effect::StopModel);
        let exchange = Box::default();
        let assistant = AssistantMessage { id, message, finish_reason: reason.clone(), exchange };
        self.publish(step, EventKind::AssistantMessage(assistant));
        self.end(step, EventKind::RunFinished { answer, reason });
    }

    /// Ends everything that goes on, and then the run.
    fn stop(&mut self, step: &mut Step, why: &str, end: EventKind) {
        match &self.phase {
            Phase::Calling { called, .. } => {
                let message = called.message.clone();
                step.effects.push(Effect::StopModel);
                self.publish(step, EventKind::AttemptAbandoned { message, reason: why.to_owned() });
            }
            Phase::Compacting(started) => {
                let message = started.message.clone();
                step.effects.push(Effect::StopModel);
                self.publish(step, EventKind::CompactionFailed { message, reason: why.to_owned() });
            }
            Phase::Acting { .. } => self.stop_tools(step, why),
            Phase::Planning { .. } => step.effects.push(Effect::StopPlan),
            Phase::Ended(_) => return,
            Phase::Fresh => {}
        }
        self.end(step, end);
    }

    pub(super) fn stop_tools(&mut self, step: &mut Step, why: &str) {
        let Phase::Acting { calls } = &self.phase else { return };
        let busy =
            self.running_ids().into_iter().chain(ids(calls, Standing::WithClient).filter(|_| self.waits));
        step.effects.extend(busy.map(Effect::StopTool));
        let open: Vec<_> = ids(calls, Standing::Open).chain(ids(calls, Standing::WithClient)).collect();
        for call in open {
            let stopped = self.not_done(call, why.to_owned());
            self.publish(step, stopped);
        }
    }

    pub(super) fn end(&mut self, step: &mut Step, end: EventKind) {
        self.publish(step, end);
        step.effects.push(Effect::Finish);
    }
}

/// The ids of calls that stand in a certain way.
fn ids(calls: &[Open], standing: Standing) -> impl Iterator<Item = CallId> + use<'_> {
    calls.iter().filter(move |open| open.standing == standing).map(|open| open.call.id.clone())
}
