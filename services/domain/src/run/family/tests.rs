//! The agents of a run against random orders of events.

use proptest::prelude::*;

use crate::*;

/// A driver that performs nothing: it remembers what is to be done and answers as it is told.
struct Bench {
    family: Family,
    start: RunStarted,
    log: Vec<Event>,
    todo: Vec<(AgentId, Effect)>,
}

fn start(subagents: Subagents) -> RunStarted {
    RunStarted {
        model: "m".into(),
        messages: Vec::new(),
        overhead: ContextSize::default(),
        context_window: 100_000,
        max_output_tokens: 100,
        structured: false,
        client_tools: Vec::new(),
        runbooks: Vec::new(),
        approvals: true,
        waits: true,
        subagents,
        rlm: None,
        question: None,
        call: None,
        setup: Box::new(RunSetup { limits: limits(), ..RunSetup::default() }),
        account: String::new(),
        principal: String::new(),
    }
}

fn limits() -> Limits {
    Limits { steps: 4, ..Limits::default() }
}

impl Bench {
    fn new(subagents: Subagents) -> Self {
        let start = start(subagents);
        let messages = vec![Message::text(Role::User, "why?")];
        let began = EventKind::RunStarted(RunStarted { messages, ..start.clone() });
        let mut run = Run::new(limits());
        run.apply(&began);
        let mut bench =
            Self { family: Family::new(run, subagents), start, log: Vec::new(), todo: Vec::new() };
        bench.write(AgentId::main(), None, began);
        let moves = bench.family.step(&AgentId::main(), Input::Begin);
        bench.take(moves);
        bench
    }

    fn write(&mut self, agent: AgentId, parent: Option<AgentId>, kind: EventKind) {
        let (run, position, time) = (RunId::new("r"), self.log.len() as u64 + 1, Timestamp::default());
        self.log.push(Event { run, position, time, agent, parent, kind });
    }

    fn take(&mut self, moves: Vec<Move>) {
        for Move { agent, parent, step } in moves {
            step.events.into_iter().for_each(|kind| self.write(agent.clone(), parent.clone(), kind));
            for effect in step.effects {
                self.perform(&agent, effect);
            }
        }
    }

    fn perform(&mut self, agent: &AgentId, effect: Effect) {
        match effect {
            Effect::RunTool { call, .. } if call.name == "agent" => {
                if !self.family.has_started(&call.id) {
                    let moves = self.family.start(agent, &call.id, "look", &self.start);
                    self.take(moves);
                }
            }
            Effect::Finish => self.todo.retain(|(other, _)| other != agent),
            Effect::StopModel => self.todo.retain(|(other, todo)| {
                other != agent || !matches!(todo, Effect::CallModel { .. } | Effect::Summarize { .. })
            }),
            Effect::StopPlan => {
                self.todo.retain(|(other, todo)| other != agent || !matches!(todo, Effect::Plan(_)));
            }
            Effect::StopTool(id) => self.todo.retain(|(_, todo)| match todo {
                Effect::RunTool { call, .. } => call.id != id,
                Effect::AwaitClient { call, .. } => *call != id,
                _ => true,
            }),
            Effect::ArmTimer(_) | Effect::SendCall(_) => {}
            other => self.todo.push((agent.clone(), other)),
        }
    }

    /// Another process folds the log and goes on.
    fn take_over(&mut self) {
        self.family = Family::fold(limits(), &self.log);
        self.todo.clear();
        let moves = self.family.step_all(&Input::TakenOver);
        self.take(moves);
    }

    fn advance(&mut self, nth: usize, dice: u8) {
        if self.todo.is_empty() {
            return;
        }
        let (agent, effect) = self.todo.remove(nth % self.todo.len());
        let input = match effect {
            Effect::CallModel { message, .. } => Input::ModelReplied { message, reply: reply(dice) },
            Effect::Plan(calls) => Input::Planned(calls.iter().map(|call| plan(call, dice)).collect()),
            Effect::RunTool { call, .. } => {
                Input::ToolFinished { call: call.id, result: ToolResult::success("ok") }
            }
            Effect::AwaitClient { call, .. } => {
                Input::Settled { call, settlement: Settlement::Denied("no".into()) }
            }
            other => panic!("{other:?} is not waited for"),
        };
        let moves = self.family.step(&agent, input);
        self.take(moves);
    }

    fn check(&self) {
        assert_eq!(Family::fold(limits(), &self.log), self.family, "folding the log gives the state");
        let mut going_on = std::collections::BTreeMap::new();
        let mut number = 0;
        for event in &self.log {
            match &event.kind {
                EventKind::RunStarted(started) => {
                    if let Some(parent) = &event.parent {
                        assert!(going_on.contains_key(parent), "a parent goes on");
                    }
                    number += u32::from(event.parent.is_some());
                    assert!(going_on.insert(event.agent.clone(), started.call.clone()).is_none());
                }
                EventKind::ToolFinished { call, .. } => {
                    assert!(going_on.contains_key(&event.agent));
                    let child = going_on.values().any(|of| of.as_ref() == Some(call));
                    let stopped = matches!(&event.kind, EventKind::ToolFinished { result, .. } if result.error.is_some());
                    assert!(!child || stopped, "a subagent ends before its call does");
                }
                kind => {
                    assert!(
                        going_on.contains_key(&event.agent),
                        "nothing follows the end of an agent: {kind:?}"
                    );
                    if kind.is_terminal() {
                        going_on.remove(&event.agent);
                    }
                    if event.ends_run() {
                        assert!(going_on.is_empty(), "no agent outlives the run: {going_on:?}");
                    }
                }
            }
        }
        assert!(number <= self.start.subagents.number);
    }
}

fn reply(dice: u8) -> ModelReply {
    let mut message = Message::text(Role::Assistant, "said");
    let name = |n: u8| if (dice + n).is_multiple_of(2) { "agent" } else { "bash" };
    message.tool_calls = (0..dice % 4)
        .map(|n| ToolCall {
            id: CallId::new(n.to_string()),
            name: name(n).into(),
            arguments: format!("{{\"task\":\"{dice}{n}\"}}"),
        })
        .collect();
    let usage = Usage { prompt: 10, completion: 2, ..Usage::default() };
    ModelReply { message, usage, finish_reason: "stop".into(), in_form: true, exchange: Exchange::default() }
}

fn plan(call: &ToolCall, dice: u8) -> ToolPlan {
    let verdict = match dice {
        dice if dice.is_multiple_of(5) && call.name != "agent" => ToolVerdict::AskClient,
        _ => ToolVerdict::Allow,
    };
    ToolPlan {
        call: call.id.clone(),
        description: String::new(),
        toolset: None,
        cluster: None,
        by: None,
        verdict,
    }
}

proptest! {
    #[test]
    fn agents_begin_and_end_within_their_parents(
        depth in 0..4_u32,
        number in 0..9_u32,
        moves in prop::collection::vec((0..20_u8, any::<usize>(), 0..60_u8), 0..80),
    ) {
        let mut bench = Bench::new(Subagents { depth, number });
        for (kind, nth, dice) in moves {
            let main = AgentId::main();
            let agents: Vec<_> = bench.todo.iter().map(|(agent, _)| agent.clone()).collect();
            let agent = agents.get(nth % agents.len().max(1)).unwrap_or(&main);
            match kind {
                0 if dice < 10 => { let moves = bench.family.step(&main, Input::Cancelled { reason: "enough".into() }); bench.take(moves); }
                1 if dice < 20 => { let moves = bench.family.step(agent, Input::TimeUp); bench.take(moves); }
                2 if dice < 20 && bench.family.main().outcome().is_none() => bench.take_over(),
                3 if dice < 20 => { let moves = bench.family.step(agent, Input::Broken { text: "disk".into() }); bench.take(moves); }
                _ => bench.advance(nth, dice),
            }
            bench.check();
        }
    }
}

#[test]
fn all_agents_share_the_ceilings_of_the_run() {
    let subagents = Subagents { depth: 1, number: 1 };
    let mut run = Run::new(Limits { tokens: Some(20), ..Limits::default() });
    run.apply(&EventKind::RunStarted(start(subagents)));
    let used = |prompt| {
        let totals = Totals { prompt, ..Totals::default() };
        let (usage, context) = (Usage::default(), ContextSize::default());
        EventKind::UsageReported(UsageReported { usage, totals, context })
    };
    run.see(&AgentId::sub(1), &used(12));
    run.apply(&used(7));
    assert_eq!(run.totals_of_all().tokens(), 19);
    let child = run.subagent(AgentId::sub(2), Limits::default());
    assert_eq!(child.totals_of_all(), run.totals_of_all());
    run.see(&AgentId::sub(1), &used(13));
    assert_eq!(run.totals_of_all().tokens(), 20);
}

#[test]
fn what_only_the_client_can_settle_is_for_the_agent_that_can_wait_for_it() {
    let start = RunStarted { waits: false, ..start(Subagents { depth: 1, number: 1 }) };
    let mut run = Run::new(limits());
    let messages = vec![Message::text(Role::User, "why?")];
    run.apply(&EventKind::RunStarted(RunStarted { messages, ..start.clone() }));
    let mut family = Family::new(run, start.subagents);
    let main = AgentId::main();
    let says = |family: &mut Family, agent: &AgentId, step: Step, calls: &[&str]| {
        let Some(Effect::CallModel { message, .. }) = step.effects.into_iter().last() else { panic!() };
        let call =
            |name: &&str| ToolCall { id: CallId::new(*name), name: (*name).into(), arguments: "{}".into() };
        let mut reply = reply(0);
        reply.message.tool_calls = calls.iter().map(call).collect();
        family.step(agent, Input::ModelReplied { message, reply })
    };
    let begun = family.step(&main, Input::Begin).remove(0).step;
    says(&mut family, &main, begun, &["agent"]);
    let call = ToolCall { id: CallId::new("agent"), name: "agent".into(), arguments: "{}".into() };
    family.step(&main, Input::Planned(vec![plan(&call, 1)]));
    let started = family.start(&main, &call.id, "look", &start).remove(0);
    let child = started.agent.clone();
    let planned = says(&mut family, &child, started.step, &["ask", "client"]);
    let Some(Effect::Plan(calls)) =
        planned.into_iter().last().and_then(|last| last.step.effects.into_iter().last())
    else {
        panic!()
    };
    let approval = Approval {
        reason: "It changes things.".into(),
        command: String::new(),
        target: String::new(),
        effect: ToolEffect::Mutation,
        prefixes: Vec::new(),
        policy: String::new(),
    };
    let verdicts = [ToolVerdict::AskPerson(approval), ToolVerdict::AskClient];
    let plans = calls.iter().zip(verdicts).map(|(call, verdict)| ToolPlan { verdict, ..plan(call, 1) });
    let moves = family.step(&child, Input::Planned(plans.collect()));
    let told: Vec<_> = moves[0]
        .step
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::ToolFinished { result, .. } => result.error.clone(),
            _ => None,
        })
        .collect();
    assert!(told[0].contains("It changes things. Whoever gave you this task"), "{told:?}");
    assert!(told[1].contains("the client's"), "{told:?}");
    assert!(matches!(moves[0].step.effects[..], [Effect::CallModel { .. }]), "it goes on");
}

/// A run whose agent has started another one.
fn bench_with_a_subagent() -> Bench {
    let mut bench = Bench::new(Subagents { depth: 1, number: 1 });
    for _ in 0..8 {
        if bench.family.get(&AgentId::sub(1)).is_some() {
            return bench;
        }
        bench.advance(0, 2);
    }
    panic!("{:?}", bench.log)
}

#[test]
fn what_is_said_to_a_run_is_said_to_the_agent_that_answers() {
    let mut bench = bench_with_a_subagent();
    let word = Steered {
        key: "1".into(),
        message: Message::text(Role::User, "and this?"),
        principal: String::new(),
    };
    let moves = bench.family.told(&Input::Steered(word));
    let heard: Vec<_> = moves.iter().map(|told| &told.agent).collect();
    assert_eq!(heard, [&AgentId::main()]);
}

#[test]
fn what_a_provider_says_of_an_agent_that_fails_stays_with_it() {
    let mut bench = bench_with_a_subagent();
    let asked = bench.todo.iter().find_map(|(agent, effect)| match effect {
        Effect::CallModel { message, .. } if *agent == AgentId::sub(1) => Some(message.clone()),
        _ => None,
    });
    let (code, text) = (FailureCode::Unauthenticated, "401: bad key sk-1".to_owned());
    let failed = Input::ModelFailed { message: asked.unwrap(), code, text };
    let moves = bench.family.step(&AgentId::sub(1), failed);
    let heard = moves.iter().flat_map(|told| &told.step.events).find_map(|event| match event {
        EventKind::ToolFinished { result, .. } => result.error.clone(),
        _ => None,
    });
    assert_eq!(heard.as_deref(), Some("The agent failed: its model did not answer"));
}
