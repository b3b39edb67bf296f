//! The machine against random inputs, and the flows that have a name.

mod bench;
mod cuts;

use proptest::prelude::*;

use super::*;
use crate::*;
use bench::*;

proptest! {
    #[test]
    fn any_inputs_keep_the_promises(limits in limits(), kind in 0..3_u8, structured: bool, window in 150..1500_u64, moves in prop::collection::vec((0..12_u8, any::<usize>(), any::<u8>()), 0..60)) {
        let mut bench = match kind {
            0 => Bench::resuming(limits),
            1 => Bench::waiting(limits),
            _ => Bench::asking(limits, structured, window),
        };
        for (kind, nth, dice) in moves {
            match kind {
                0 if dice < 40 => { bench.give(Input::Cancelled { reason: "enough".into() }); prop_assert!(bench.run.outcome().is_some()); }
                1 if dice < 40 => { bench.give(Input::Broken { text: "disk".into() }); prop_assert!(bench.run.outcome().is_some()); }
                2 if dice < 90 => { bench.give(Input::TimeUp); }
                3 => { bench.give(Input::ToolFinished { call: CallId::new(dice.to_string()), result: ran("late") }); bench.resync(); }
                4 => { bench.give(Input::TextDelta { message: MessageId::new("msg_0_0"), text: "stale".into() }); }
                5 => { bench.give(Input::Begin); }
                6 if dice < 60 => bench.take_over(),
                7 if dice < 90 => bench.steer(dice),
                _ => bench.advance(nth, dice),
            }
            if bench.run.outcome().is_some() { bench.todo = vec![Effect::Finish]; }
            bench.check();
        }
    }

    #[test]
    fn a_cancelled_run_ends_at_once(limits in limits(), moves in prop::collection::vec((any::<usize>(), any::<u8>()), 0..30)) {
        let mut bench = Bench::new(limits);
        for (nth, dice) in moves { bench.advance(nth, dice); }
        bench.give(Input::Cancelled { reason: "enough".into() });
        prop_assert!(bench.run.outcome().is_some());
        let length = bench.log.len();
        for input in [Input::TimeUp, Input::Begin, Input::Planned(vec![]), Input::Cancelled { reason: "again".into() }] {
            bench.give(input);
        }
        prop_assert_eq!(bench.log.len(), length);
    }
}

impl Bench {
    /// A tool finished behind the back of `todo`.
    fn resync(&mut self) {
        let in_flight = self.run.in_flight();
        self.todo.retain(|todo| !matches!(todo, Effect::RunTool { .. }) || in_flight.contains(todo));
    }
}

#[test]
fn the_last_step_offers_no_tools_and_its_answer_counts() {
    let mut bench = Bench::new(Limits { steps: 2, ..Limits::default() });
    bench.advance(0, 1);
    bench.advance(0, 1);
    bench.advance(0, 1);
    let [Effect::CallModel { offer_tools: false, note: Some(note), message }] = bench.todo.as_slice() else {
        panic!("{:?}", bench.todo)
    };
    assert!(note.contains("limit of steps"), "{note}");
    let message = message.clone();
    let mut last = reply(2, 1);
    last.message.parts = vec![Part::Text("half an answer".into())];
    bench.give(Input::ModelReplied { message, reply: last });
    let end = EventKind::RunFinished { answer: "half an answer".into(), reason: "step_limit".into() };
    assert_eq!(bench.log.last(), Some(&end));
}

#[test]
fn a_repeated_call_is_not_run_again() {
    let mut bench = Bench::new(Limits::default());
    for _ in 0..2 {
        bench.advance(0, 1);
        bench.advance(0, 1);
        if bench.todo.len() == 1 && matches!(bench.todo[0], Effect::RunTool { .. }) {
            bench.advance(0, 1);
        }
    }
    let errors: Vec<_> = bench
        .log
        .iter()
        .filter_map(|event| match event {
            EventKind::ToolFinished { result, .. } => Some(result.error.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(errors, [None, Some(text::REPEATED.to_owned())]);
}

#[test]
fn time_up_ends_the_tools_asks_for_the_answer_and_then_takes_what_there_is() {
    let mut bench = Bench::new(Limits::default());
    bench.advance(0, 2);
    bench.advance(0, 2);
    assert_eq!(bench.todo.len(), 2);
    let step = bench.give(Input::TimeUp);
    assert_eq!(step.effects.iter().filter(|e| matches!(e, Effect::StopTool(_))).count(), 2);
    let Some(Effect::CallModel { message, offer_tools: false, .. }) = bench.todo.first().cloned() else {
        panic!("{:?}", bench.todo)
    };
    bench.give(Input::TextDelta { message, text: "so far".into() });
    bench.give(Input::TimeUp);
    let end = EventKind::RunFinished { answer: "so far".into(), reason: "time_limit".into() };
    assert_eq!(bench.log.last(), Some(&end));
}

#[test]
fn a_call_is_sent_once_the_log_says_where_and_whoever_takes_over_knows() {
    let mut bench = Bench::new(Limits { parallel_tools: 1, ..Limits::default() });
    bench.give(Input::ModelReplied { message: MessageId::new("msg_1_1"), reply: reply(2, 1) });
    let Some(Effect::Plan(calls)) = bench.todo.pop() else { panic!("{:?}", bench.todo) };
    let allow = |call: &ToolCall| ToolPlan { verdict: ToolVerdict::Allow, ..plan(call, 1) };
    bench.give(Input::Planned(calls.iter().map(allow).collect()));
    let place = |call: &ToolCall| Input::Placed { call: call.id.clone(), placement: placement() };
    assert_eq!(bench.give(place(&calls[1])), Step::default(), "it has no room yet");
    let placed = EventKind::CallPlaced { call: calls[0].id.clone(), placement: placement() };
    let sent = Step { events: vec![placed], effects: vec![Effect::SendCall(calls[0].id.clone())] };
    assert_eq!(bench.give(place(&calls[0])), sent);
    bench.take_over();
    let before = bench.todo.iter().find_map(|todo| match todo {
        Effect::RunTool { before, .. } => Some(before.clone()),
        _ => None,
    });
    assert_eq!(before.unwrap().placement, Some(placement()));
}

#[test]
fn a_call_for_the_client_suspends_the_run_once_the_others_have_ended() {
    let mut bench = Bench::new(Limits::default());
    bench.advance(0, 2);
    let Some(Effect::Plan(calls)) = bench.todo.pop() else { panic!("{:?}", bench.todo) };
    let verdicts = [ToolVerdict::AskClient, ToolVerdict::Allow];
    let plans = calls.iter().zip(verdicts).map(|(call, verdict)| ToolPlan { verdict, ..plan(call, 1) });
    bench.give(Input::Planned(plans.collect()));
    assert_eq!(bench.run.outcome(), None);
    bench.advance(0, 1);
    assert_eq!(bench.run.outcome(), Some(Outcome::Suspended));
    let names: Vec<_> = bench.log.iter().rev().take(3).collect();
    assert!(matches!(
        names[..],
        [EventKind::RunSuspended, EventKind::UsageReported(_), EventKind::ToolFinished { .. }]
    ));
    bench.check();
}

#[test]
fn a_call_for_a_person_suspends_the_run_or_is_refused_where_there_is_none() {
    for approvals in [true, false] {
        let messages = vec![Message::text(Role::User, "why?")];
        let started = RunStarted { approvals, ..started(messages) };
        let mut bench = Bench::begin(Limits::default(), started, Vec::new());
        bench.advance(0, 1);
        let Some(Effect::Plan(calls)) = bench.todo.pop() else { panic!("{:?}", bench.todo) };
        let verdict = ToolVerdict::AskPerson(approval());
        bench.give(Input::Planned(vec![ToolPlan { verdict, ..plan(&calls[0], 1) }]));
        assert_eq!(bench.run.outcome(), approvals.then_some(Outcome::Suspended));
        let refused = bench.log.iter().find_map(|event| match event {
            EventKind::ToolFinished { result, .. } => result.error.as_deref(),
            _ => None,
        });
        assert_eq!(refused.is_some_and(|why| why.contains("It changes something.")), !approvals);
        bench.check();
    }
}

#[test]
fn a_call_waits_in_a_run_that_waits_while_the_others_go_on() {
    let mut bench = Bench::waiting(Limits { parallel_tools: 1, ..Limits::default() });
    bench.advance(0, 3);
    let Some(Effect::Plan(calls)) = bench.todo.pop() else { panic!("{:?}", bench.todo) };
    let verdicts = [ToolVerdict::AskPerson(approval()), ToolVerdict::Allow, ToolVerdict::AskClient];
    let plans = calls.iter().zip(verdicts).map(|(call, verdict)| ToolPlan { verdict, ..plan(call, 1) });
    bench.give(Input::Planned(plans.collect()));
    let [asked, runs, shown] = &calls[..] else { panic!("{calls:?}") };
    bench.give(Input::ToolFinished { call: runs.id.clone(), result: ran("ok") });
    bench.resync();
    assert_eq!(bench.run.outcome(), None, "it waits");

    let settle = |call: &ToolCall, settlement| Input::Settled { call: call.id.clone(), settlement };
    let permission = Permission { run: RunId::new("r"), grant: vec![1], standing: Vec::new(), always: false };
    bench.give(settle(asked, Settlement::Allowed(permission.clone())));
    let run = |effect: &Effect| matches!(effect, Effect::RunTool { permission: Some(one), .. } if *one == permission);
    assert!(bench.todo.iter().any(run), "{:?}", bench.todo);
    assert_eq!(
        bench.give(settle(asked, Settlement::Denied("no".into()))),
        Step::default(),
        "the first word counts"
    );
    bench.give(Input::ToolFinished { call: asked.id.clone(), result: ran("changed") });
    bench.resync();
    bench.give(settle(shown, Settlement::Done("drawn".into())));
    assert!(matches!(bench.todo[..], [Effect::CallModel { .. }]), "{:?}", bench.todo);
    let told: Vec<_> = bench.run.messages().iter().rev().take(3).map(Message::joined_text).collect();
    assert_eq!(told[0], "drawn");
    bench.check();
}

#[test]
fn a_run_that_never_comes_further_is_given_up() {
    let mut bench = Bench::new(Limits::default());
    for _ in 0..3 {
        bench.take_over();
        assert_eq!(bench.run.outcome(), None);
    }
    bench.advance(0, 1);
    bench.take_over();
    assert_eq!(bench.run.outcome(), None, "it came further");
    for _ in 0..3 {
        bench.take_over();
    }
    assert!(
        matches!(bench.log.last(), Some(EventKind::RunFailed { message, .. }) if message == text::SEALED)
    );
}

#[test]
fn a_run_that_is_handed_over_again_and_again_goes_on() {
    let mut bench = Bench::new(Limits::default());
    for _ in 0..10 {
        bench.give(Input::HandedOver);
        bench.take_over();
        assert_eq!(bench.run.outcome(), None);
    }
    for _ in 0..4 {
        bench.take_over();
    }
    assert_eq!(bench.run.outcome(), Some(Outcome::Failed), "losses count as ever");
    assert_eq!(bench.give(Input::HandedOver), Step::default());
}

#[test]
fn an_approved_call_runs_before_the_model_is_asked() {
    let mut bench = Bench::resuming(Limits::default());
    let [Effect::RunTool { call, permission: Some(permission), .. }] = bench.todo.as_slice() else {
        panic!("{:?}", bench.todo)
    };
    assert_eq!((call.id.as_str(), permission.grant.as_slice()), ("q", [1].as_slice()));
    bench.advance(0, 1);
    assert!(matches!(bench.todo.as_slice(), [Effect::CallModel { .. }]));
    let roles: Vec<_> = bench.run.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
    bench.check();
}

#[test]
fn a_resolved_call_gets_its_result_behind_the_message_that_asked() {
    let mut asked = Message::text(Role::Assistant, "");
    asked.tool_calls = vec![call("a", "{}"), call("b", "{}")];
    let answered = Message::tool(CallId::new("a"), "bash", "done");
    let messages = vec![asked, answered, Message::text(Role::User, "and now?")];
    let mut run = Run::new(Limits::default());
    run.messages = messages;
    run.apply(&EventKind::CallResolved { call: call("b", "{}"), result: ran("drawn"), by_client: true });
    let roles: Vec<_> = run.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Tool, Role::User]);
    assert_eq!(run.messages()[2].joined_text(), "drawn");
}

#[test]
fn an_answer_without_its_form_is_asked_for_again_with_the_draft_and_then_reported() {
    let mut bench = Bench::asking(Limits::default(), true, 1000);
    for tried in 0..3 {
        let Some(Effect::CallModel { message, offer_tools, note }) = bench.todo.pop() else {
            panic!("{:?}", bench.todo)
        };
        assert_eq!((offer_tools, note.is_some()), (tried == 0, tried > 0));
        assert!(note.is_none_or(|note| note.ends_with("just prose")));
        bench.give(Input::TextDelta { message: message.clone(), text: "just prose".into() });
        bench.give(Input::ModelReplied { message, reply: ModelReply { in_form: false, ..reply(0, 1) } });
    }
    assert!(matches!(bench.log.last(), Some(EventKind::RunFailed { code: FailureCode::MalformedReply, .. })));
    bench.todo = vec![Effect::Finish];
    bench.check();
}
