//! A driver that performs nothing, and what it answers with.

use std::{collections::HashMap, time::Duration};

use proptest::prelude::*;

use super::*;

/// A driver that performs nothing: it remembers what is to be done and answers as it is told.
pub(super) struct Bench {
    pub(super) run: Run,
    pub(super) limits: Limits,
    pub(super) log: Vec<EventKind>,
    pub(super) todo: Vec<Effect>,
}

impl Bench {
    pub(super) fn new(limits: Limits) -> Self {
        Self::asking(limits, false, 1000)
    }

    pub(super) fn asking(limits: Limits, structured: bool, context_window: u64) -> Self {
        let messages = vec![Message::text(Role::User, "why?")];
        Self::begin(limits, RunStarted { structured, context_window, ..started(messages) }, Vec::new())
    }

    /// Asks in a run that waits for its client.
    pub(super) fn waiting(limits: Limits) -> Self {
        let messages = vec![Message::text(Role::User, "why?")];
        Self::begin(limits, RunStarted { waits: true, ..started(messages) }, Vec::new())
    }

    /// Goes on with a conversation whose last message asked for two calls, of which a person allowed one.
    pub(super) fn resuming(limits: Limits) -> Self {
        let mut asked = Message::text(Role::Assistant, "");
        asked.tool_calls = vec![call("p", "{}"), call("q", "{}")];
        let messages = vec![Message::text(Role::User, "why?"), asked, Message::text(Role::User, "and now?")];
        let denied = ToolResult::error("no");
        let denied = EventKind::CallResolved { call: call("p", "{}"), result: denied, by_client: false };
        let approved = EventKind::CallApproved {
            call: call("q", "{}"),
            description: "d".into(),
            toolset: None,
            cluster: None,
            permission: Permission {
                run: RunId::new("run_1"),
                grant: vec![1],
                standing: Vec::new(),
                always: false,
            },
        };
        Self::begin(limits, started(messages), vec![denied, approved])
    }

    pub(super) fn begin(limits: Limits, started: RunStarted, more: Vec<EventKind>) -> Self {
        let log: Vec<_> = std::iter::once(EventKind::RunStarted(started)).chain(more).collect();
        let mut bench = Self { run: Run::fold(limits, &log), limits, log, todo: Vec::new() };
        bench.give(Input::Begin);
        if bench.todo.is_empty() {
            bench.todo = bench.run.in_flight();
        }
        bench
    }

    pub(super) fn give(&mut self, input: Input) -> Step {
        let step = self.run.step(input);
        self.log.extend(step.events.clone());
        for effect in step.effects.clone() {
            match effect {
                Effect::StopModel => self
                    .todo
                    .retain(|todo| !matches!(todo, Effect::CallModel { .. } | Effect::Summarize { .. })),
                Effect::StopPlan => self.todo.retain(|todo| !matches!(todo, Effect::Plan(_))),
                Effect::StopTool(id) => {
                    self.todo.retain(|todo| match todo {
                        Effect::RunTool { call, .. } => call.id != id,
                        Effect::AwaitClient { call, .. } => *call != id,
                        _ => true,
                    });
                }
                Effect::ArmTimer(_) | Effect::SendCall(_) => {}
                other => self.todo.push(other),
            }
        }
        step
    }

    /// Another process folds the log and goes on.
    pub(super) fn take_over(&mut self) {
        self.run = Run::fold(self.limits, &self.log);
        self.todo.clear();
        self.give(Input::TakenOver);
    }

    /// Takes the `nth` thing to do and says how it ends, as `dice` will have it.
    pub(super) fn advance(&mut self, nth: usize, dice: u8) {
        if self.todo.is_empty() {
            return;
        }
        let effect = self.todo.remove(nth % self.todo.len());
        match effect {
            Effect::CallModel { message, .. } | Effect::Summarize { message } if dice.is_multiple_of(17) => {
                self.give(Input::ModelFailed {
                    message,
                    code: FailureCode::ModelUnavailable,
                    text: "down".into(),
                });
            }
            Effect::CallModel { message, .. } | Effect::Summarize { message } if dice.is_multiple_of(13) => {
                self.give(Input::ModelLost { message });
            }
            Effect::CallModel { message, .. } => {
                self.give(Input::TextDelta { message: message.clone(), text: "hm".into() });
                self.give(Input::ModelReplied { message, reply: reply(usize::from(dice % 5), dice) });
            }
            Effect::Summarize { message } => {
                let mut reply = reply(0, dice);
                reply.message = Message::text(Role::Assistant, "so far ".repeat(usize::from(dice)));
                self.give(Input::TextDelta { message: message.clone(), text: "so".into() });
                self.give(Input::ModelReplied { message, reply });
            }
            Effect::Plan(calls) => {
                let plans = calls.iter().map(|call| plan(call, dice)).collect();
                self.give(Input::Planned(plans));
            }
            Effect::RunTool { call, .. } => {
                self.give(Input::Placed { call: call.id.clone(), placement: placement() });
                let chunk = Input::ToolOutput {
                    call: call.id.clone(),
                    stream: OutputStream::Stdout,
                    text: "x".into(),
                };
                self.give(chunk);
                self.give(Input::ToolFinished { call: call.id, result: ran("ok") });
            }
            Effect::AwaitClient { call, .. } => {
                let permission = Permission {
                    run: RunId::new("run_1"),
                    grant: vec![1],
                    standing: Vec::new(),
                    always: false,
                };
                let settlement = match dice % 4 {
                    0 => Settlement::Allowed(permission),
                    1 => Settlement::Denied("no".into()),
                    2 => Settlement::Done("drawn".into()),
                    _ => Settlement::Expired,
                };
                self.give(Input::Settled { call, settlement });
            }
            Effect::Finish => self.todo.push(Effect::Finish),
            Effect::StopModel
            | Effect::StopPlan
            | Effect::StopTool(_)
            | Effect::AnswerCode { .. }
            | Effect::SendCall(_)
            | Effect::ArmTimer(_) => {
                unreachable!("never kept")
            }
        }
    }

    pub(super) fn check(&self) {
        let folded = Run::fold(self.limits, &self.log);
        assert_eq!(folded, self.run, "folding the log gives the state");
        assert_eq!(sorted(&folded.in_flight()), sorted(&self.todo), "the log says what is to be done");

        let end = self.log.iter().position(EventKind::is_terminal);
        assert!(end.is_none_or(|at| at + 1 == self.log.len()), "nothing follows the end");
        let mut open: HashMap<&CallId, u32> = HashMap::new();
        let mut with_client = 0;
        let (mut begun, mut compacted, mut kept) = (0, 0, 0);
        for event in &self.log {
            match event {
                EventKind::ToolStarted { call, .. } | EventKind::CallApproved { call, .. } => {
                    assert_eq!(open.insert(&call.id, 0), None, "an id names one call");
                }
                EventKind::ClientToolRequested { .. } | EventKind::ApprovalRequested { .. } => {
                    with_client += 1;
                }
                EventKind::CompactionStarted(_) => begun += 1,
                EventKind::CompactionDone(done) => {
                    compacted += 1;
                    assert!(done.tokens_after < done.tokens_before, "a compaction gains something");
                }
                EventKind::CompactionFailed { .. } => kept += 1,
                EventKind::CallResolved { call, by_client: true, .. } => {
                    *open.get_mut(&call.id).expect("started before") += 1;
                }
                EventKind::ToolFinished { call, .. } => *open.get_mut(call).expect("started before") += 1,
                _ => {}
            }
        }
        assert!(open.values().all(|ends| *ends <= 1), "a call ends once");
        let left = open.values().filter(|ends| **ends == 0).count();
        match self.run.outcome() {
            Some(Outcome::Suspended) => {
                assert_eq!(left, with_client, "only the client's calls are left open");
            }
            Some(_) => assert_eq!(left, 0, "no call is left open"),
            None => {}
        }
        let summaries = self.todo.iter().filter(|todo| matches!(todo, Effect::Summarize { .. })).count();
        assert_eq!(begun, compacted + kept + summaries, "a compaction ends once");
        assert_eq!(self.run.totals().compactions as usize, compacted);
        let running = self.todo.iter().filter(|todo| matches!(todo, Effect::RunTool { .. })).count();
        assert!(running <= self.limits.parallel_tools as usize);
        assert!(
            self.run.steps() <= self.limits.steps + 1,
            "whatever is said, there are no more steps than allowed"
        );
        let heard = self.log.iter().rposition(|event| matches!(event, EventKind::ModelCalled(_)));
        let later = self.log.iter().skip(heard.unwrap_or(0));
        let later = later.filter(|event| matches!(event, EventKind::Steered(_))).count();
        assert_eq!(self.run.unheard.len(), later, "a model call has everything that was said before it");
        if let Some(EventKind::RunFinished { reason, .. }) = self.log.last() {
            let may_leave_out = Ceiling::named(reason).is_some();
            assert!(later == 0 || may_leave_out, "no other answer is the last that leaves something out");
        }
    }

    pub(super) fn steer(&mut self, dice: u8) {
        let message = Message::text(Role::User, format!("also {dice}"));
        self.give(Input::Steered(Steered { key: dice.to_string(), message, principal: String::new() }));
    }
}

pub(super) fn started(messages: Vec<Message>) -> RunStarted {
    RunStarted {
        model: "m".into(),
        messages,
        overhead: ContextSize::default(),
        context_window: 1000,
        max_output_tokens: 100,
        structured: false,
        client_tools: Vec::new(),
        runbooks: Vec::new(),
        approvals: true,
        waits: false,
        subagents: Subagents::default(),
        rlm: None,
        question: None,
        call: None,
        setup: Box::default(),
        account: String::new(),
        principal: String::new(),
    }
}

pub(super) fn placement() -> Placement {
    Placement { executor: "http://10.0.0.7:50052".into(), instance: "i".into() }
}

pub(super) fn sorted(effects: &[Effect]) -> Vec<String> {
    let mut effects: Vec<_> = effects.iter().map(|effect| format!("{effect:?}")).collect();
    effects.sort();
    effects
}

pub(super) fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: "bash".into(), arguments: arguments.into() }
}

pub(super) fn reply(calls: usize, dice: u8) -> ModelReply {
    let mut message = Message::text(Role::Assistant, "said");
    // Ids repeat between messages, and arguments now and then.
    message.tool_calls =
        (0..calls).map(|n| call(&n.to_string(), &format!("{}", (dice as usize + n) % 7))).collect();
    let usage = Usage { prompt: 10, completion: 2, ..Usage::default() };
    ModelReply {
        message,
        usage,
        finish_reason: "stop".into(),
        in_form: !dice.is_multiple_of(4),
        exchange: Exchange::default(),
    }
}

pub(super) fn plan(call: &ToolCall, dice: u8) -> ToolPlan {
    let verdict = match dice {
        dice if dice.is_multiple_of(3) => ToolVerdict::Refuse("no".into()),
        dice if dice.is_multiple_of(11) => ToolVerdict::AskPerson(approval()),
        _ => ToolVerdict::Allow,
    };
    ToolPlan {
        call: call.id.clone(),
        description: "d".into(),
        toolset: None,
        cluster: None,
        by: None,
        verdict,
    }
}

pub(super) fn approval() -> Approval {
    Approval {
        reason: "It changes something.".into(),
        command: "touch x".into(),
        target: "host".into(),
        effect: ToolEffect::Mutation,
        prefixes: Vec::new(),
        policy: "1".into(),
    }
}

pub(super) fn ran(data: &str) -> ToolResult {
    let elapsed = Some(Duration::from_millis(1));
    ToolResult {
        status: ToolStatus::Success,
        data: data.into(),
        error: None,
        elapsed,
        ..ToolResult::error("")
    }
}

pub(super) fn limits() -> impl Strategy<Value = Limits> {
    (1..6_u32, 0..9_u32, 1..4_u32, prop::option::of(0..60_u64)).prop_map(
        |(steps, tool_calls, parallel_tools, tokens)| Limits {
            steps,
            tool_calls,
            parallel_tools,
            tokens,
            ..Limits::default()
        },
    )
}
