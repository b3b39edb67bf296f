//! The flows of a compaction that have a name.

use super::*;
use crate::{CallId, ContextSize, Exchange, Input, Limits, RunStarted, Usage};

/// A run whose client brings a long history.
fn run(percent: Option<u64>, window: u64) -> (Run, Step) {
    let history = [Message::text(Role::System, "be brief"), Message::text(Role::User, "first question")];
    let long = (0..20).map(|n| Message::text(Role::Assistant, format!("finding {n}: {}", "x ".repeat(100))));
    let question = Message::text(Role::User, "and now?");
    let mut run = Run::new(Limits { compaction_percent: percent, ..Limits::default() });
    run.apply(&EventKind::RunStarted(RunStarted {
        model: "m".into(),
        messages: history.into_iter().chain(long).chain([question]).collect(),
        overhead: ContextSize { system: 50, tool_schemas: 50, ..ContextSize::default() },
        context_window: window,
        max_output_tokens: 200,
        structured: false,
        client_tools: Vec::new(),
        runbooks: Vec::new(),
        waits: false,
        subagents: crate::Subagents::default(),
        rlm: None,
        question: None,
        call: None,
        approvals: false,
        setup: Box::default(),
        account: String::new(),
        principal: String::new(),
    }));
    let step = run.step(Input::Begin);
    (run, step)
}

fn summary(step: &Step) -> MessageId {
    let Some(Effect::Summarize { message }) = step.effects.last() else { panic!("{step:?}") };
    message.clone()
}

fn says(text: &str) -> ModelReply {
    let usage = Usage { prompt: 900, completion: 30, cost_usd: 0.5, ..Usage::default() };
    let message = Message::text(Role::Assistant, text);
    ModelReply { message, usage, finish_reason: "stop".into(), in_form: true, exchange: Exchange::default() }
}

#[test]
fn the_summary_takes_the_place_of_all_but_instructions_and_question() {
    let (mut run, step) = run(Some(95), 1000);
    let request = run.summary_request();
    assert!(tokens::of_text(&request.transcript) + tokens::of_text(request.instruction) < 800);
    assert!(request.transcript.contains("finding 0") && request.transcript.contains("finding 19"));
    assert!(request.transcript.contains("## User\n\nand now?") && !request.transcript.contains("be brief"));

    let message = summary(&step);
    let step = run.step(Input::ModelReplied { message, reply: says(" <analysis>x</analysis>\n") });
    let [
        EventKind::CompactionDone(done),
        EventKind::Notice { .. },
        EventKind::UsageReported(report),
        EventKind::ModelCalled(_),
    ] = step.events.as_slice()
    else {
        panic!("{step:?}")
    };
    let said: Vec<_> = done.messages.iter().map(|said| (said.role, said.joined_text())).collect();
    assert_eq!(
        said,
        [
            (Role::System, "be brief".to_owned()),
            (Role::User, "and now?".to_owned()),
            (Role::Assistant, "<analysis>x</analysis>".to_owned()),
            (Role::System, text::COMPACTED.to_owned()),
        ]
    );
    assert_eq!((report.totals.compactions, report.totals.cost_usd), (1, 0.5));
    assert_eq!(report.context.total(), done.tokens_after);
    assert_eq!((report.context.tool_schemas, run.messages().len()), (50, 4));
    assert_eq!(run.prompt().last().map(|last| last.role), Some(Role::User));
}

#[test]
fn without_a_summary_what_fits_goes_on_and_what_does_not_fails() {
    for (window, goes_on) in [(1500, true), (1000, false)] {
        let failed = |message| Input::ModelFailed {
            message,
            code: FailureCode::ModelUnavailable,
            text: "down".into(),
        };
        let longer = |message| Input::ModelReplied { message, reply: says(&"word ".repeat(5000)) };
        let empty = |message| Input::ModelReplied { message, reply: says(" ") };
        for end in [failed as fn(_) -> _, longer, empty] {
            let (mut run, step) = run(Some(50), window);
            let step = run.step(end(summary(&step)));
            assert!(matches!(step.events[0], EventKind::CompactionFailed { .. }), "{step:?}");
            match step.events.last() {
                Some(EventKind::ModelCalled(_)) => assert!(goes_on),
                Some(EventKind::RunFailed { code: FailureCode::ContextTooLong, message }) => {
                    assert!(!goes_on && message.contains("Start a new conversation"), "{message}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn compaction_can_be_switched_off() {
    let (_, fits) = run(None, 1500);
    assert!(matches!(fits.events[..], [EventKind::ModelCalled(_)]), "{fits:?}");
    let (_, too_long) = run(None, 1000);
    let [EventKind::RunFailed { message, .. }] = &too_long.events[..] else { panic!("{too_long:?}") };
    assert!(message.contains("switched off"), "{message}");
}

#[test]
fn the_memory_of_calls_survives() {
    let (mut run, _) = run(Some(95), 1000);
    run.call_ids.insert(CallId::new("a"));
    run.made.insert(("bash".into(), "{}".into()));
    let before = (run.call_ids.clone(), run.made.clone());
    let step = run.step(Input::ModelReplied { message: MessageId::new("summary_1"), reply: says("short") });
    assert!(matches!(step.events[0], EventKind::CompactionDone(_)), "{step:?}");
    assert_eq!((run.call_ids, run.made), before);
}
