//! Commands of code that a person must allow.

use crate::{
    Approval, CallId, CodeOutput, Command, ContextSize, Effect, EventKind, Exchange, Input, Limits, Message,
    MessageId, ModelReply, Permission, QuestionId, Rlm, Role, Run, RunId, RunSetup, RunStarted, Settlement,
    Step, Subagents, ToolCall, ToolEffect, ToolPlan, ToolResult, ToolVerdict, Usage,
};

/// A run whose code `c1` runs, and its log.
struct Bench {
    run: Run,
    log: Vec<EventKind>,
}

fn started(waits: bool) -> RunStarted {
    RunStarted {
        model: "m".into(),
        messages: vec![Message::text(Role::User, "why?")],
        overhead: ContextSize::default(),
        context_window: 100_000,
        max_output_tokens: 100,
        structured: false,
        client_tools: Vec::new(),
        runbooks: Vec::new(),
        approvals: true,
        waits,
        subagents: Subagents::default(),
        rlm: Some(Rlm { depth: 0, max_depth: 1, iterations: 5, calls: 10 }),
        call: None,
        question: None,
        setup: Box::new(RunSetup::default()),
        account: String::new(),
        principal: String::new(),
    }
}

impl Bench {
    fn new(waits: bool) -> Self {
        Self::begun(waits, Limits { parallel_tools: 1, ..Limits::default() })
    }

    fn with(limits: Limits) -> Self {
        Self::begun(true, limits)
    }

    fn begun(waits: bool, limits: Limits) -> Self {
        let mut bench = Self { run: Run::new(limits), log: vec![EventKind::RunStarted(started(waits))] };
        bench.run.apply(&bench.log[0]);
        bench.give(Input::Begin);
        let mut message = Message::text(Role::Assistant, "");
        let arguments = r#"{"code":"exec('mkdir x')"}"#.to_owned();
        message.tool_calls = vec![ToolCall { id: CallId::new("c1"), name: "repl".into(), arguments }];
        let reply = ModelReply {
            message,
            usage: Usage::default(),
            finish_reason: "stop".into(),
            in_form: true,
            exchange: Exchange::default(),
        };
        bench.give(Input::ModelReplied { message: MessageId::new("msg_1_1"), reply });
        let (description, toolset) = (String::new(), Some("repl".to_owned()));
        let plan = ToolPlan {
            call: CallId::new("c1"),
            description,
            toolset,
            cluster: None,
            by: None,
            verdict: ToolVerdict::Allow,
        };
        bench.give(Input::Planned(vec![plan]));
        bench
    }

    fn give(&mut self, input: Input) -> Step {
        let step = self.run.step(input);
        self.log.extend(step.events.clone());
        assert_eq!(Run::fold(self.run.limits, &self.log), self.run, "the log tells all");
        step
    }

    fn asks(&mut self) -> Step {
        let approval = Approval {
            reason: "it changes something".into(),
            command: "mkdir x".into(),
            target: "host".into(),
            effect: ToolEffect::Mutation,
            prefixes: Vec::new(),
            policy: "p".into(),
        };
        let command = ToolCall { id: id(), name: "exec".into(), arguments: "{}".into() };
        self.judged(command, ToolVerdict::AskPerson(approval))
    }

    fn judged(&mut self, command: ToolCall, verdict: ToolVerdict) -> Step {
        let call = command.id.clone();
        let plan =
            ToolPlan { call, description: "mkdir x".into(), toolset: None, cluster: None, by: None, verdict };
        self.give(Input::CommandJudged { command, plan })
    }

    fn settle(&mut self, settlement: Settlement) -> Step {
        self.give(Input::Settled { call: id(), settlement })
    }
}

fn id() -> CallId {
    CallId::new("c1").of_command(&QuestionId::new("q1"))
}

fn answer(step: &Step) -> Option<&Result<String, String>> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::AnswerCode { call, question, answer } => {
            assert_eq!((call.as_str(), question.as_str()), ("c1", "q1"));
            Some(answer)
        }
        _ => None,
    })
}

#[test]
fn a_command_waits_for_a_person_while_its_code_runs_on() {
    let mut bench = Bench::new(true);
    let asked = bench.asks();
    assert!(matches!(asked.events[..], [EventKind::ToolStarted { .. }, EventKind::ApprovalRequested { .. }]));
    assert_eq!(bench.run.command(&id()), Command::Open);
    assert_eq!(bench.asks(), Step::default(), "it is asked about once");
    let permission = Permission { run: RunId::new("r"), grant: vec![1], standing: Vec::new(), always: false };
    let allowed = bench.settle(Settlement::Allowed(permission.clone()));
    let runs = |effect: &Effect| {
        matches!(effect, Effect::RunTool { call, permission: Some(given), .. }
            if call.id == id() && *given == permission)
    };
    assert!(allowed.effects.iter().any(runs), "{allowed:?}");
    let finished = Input::ToolFinished { call: id(), result: ToolResult::success("{}") };
    assert!(matches!(bench.give(finished).events[..], [EventKind::ToolFinished { .. }]));
    assert_eq!(bench.run.command(&id()), Command::Ended);
    assert_eq!(bench.run.tool_calls(), 1, "a command is no run of code");
    let ended = bench.give(Input::CodeEnded { call: CallId::new("c1"), output: CodeOutput::default() });
    assert!(ended.effects.iter().any(|effect| matches!(effect, Effect::CallModel { .. })));
    let said = bench.run.messages();
    assert_eq!(said.len(), 3, "the model reads what came of the code, and not of the command: {said:?}");
}

#[test]
fn code_hears_why_its_command_does_not_run() {
    for (settlement, why) in [
        (Settlement::Denied("use /data".into()), "exec denied: use /data"),
        (Settlement::Expired, "exec denied: Not run: nobody decided"),
    ] {
        let mut bench = Bench::new(true);
        bench.asks();
        let denied = bench.settle(settlement);
        let answer = answer(&denied).and_then(|answer| answer.as_ref().err()).unwrap();
        assert!(answer.starts_with(why), "{answer}");
    }
    let mut alone = Bench::new(false);
    let asked = alone.asks();
    assert!(
        matches!(asked.events[..], [EventKind::ToolStarted { .. }, EventKind::ToolFinished { .. }]),
        "{asked:?}"
    );
    assert_eq!(answer(&asked), Some(&Err("exec denied: it changes something".to_owned())));
}

#[test]
fn a_command_ends_with_its_code_or_with_its_run() {
    let ends = |input: Input| {
        let mut bench = Bench::new(true);
        bench.asks();
        let ended = bench.give(input);
        assert!(ended.effects.contains(&Effect::StopTool(id())), "{ended:?}");
        let closed =
            |event: &EventKind| matches!(event, EventKind::ToolFinished { call, .. } if *call == id());
        assert_eq!(ended.events.iter().filter(|event| closed(event)).count(), 1);
    };
    ends(Input::CodeEnded { call: CallId::new("c1"), output: CodeOutput::default() });
    ends(Input::Cancelled { reason: "enough".into() });
    ends(Input::TimeUp);
}

#[test]
fn commands_are_calls_of_the_run_up_to_its_ceiling() {
    let mut bench = Bench::with(Limits { tool_calls: 3, ..Limits::default() });
    let mut runs = |question: &str, verdict: ToolVerdict| {
        let id = CallId::new("c1").of_command(&QuestionId::new(question));
        let command = ToolCall { id: id.clone(), name: "exec".into(), arguments: "{}".into() };
        let judged = bench.judged(command, verdict);
        let begun = judged
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::RunTool { call, permission: None, .. } if call.id == id));
        (begun, judged.events.len())
    };
    assert_eq!(runs("q1", ToolVerdict::Allow), (true, 1));
    assert_eq!(runs("q2", ToolVerdict::Refuse("no".into())), (false, 2));
    assert_eq!(runs("q3", ToolVerdict::Allow), (false, 0), "the code, and two commands");
}
