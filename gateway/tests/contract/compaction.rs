//! What clients see of a conversation that was too long.

use domain::{CompactionDone, CompactionStarted, EventKind, FailureCode, Message, MessageId, Role, Usage};
use gateway::Config;
use serde_json::{Value, json};

use crate::{
    agent::Act,
    conversation::{counted, finished, said, started},
    world::{World, events as events_of, json as reply},
};

fn begun() -> Vec<EventKind> {
    let summary = CompactionStarted {
        message: MessageId::new("summary_1"),
        tokens: 150_000,
        messages: 3,
        threshold_percent: 95,
        time_is_up: false,
    };
    let messages = [(Role::User, "first?"), (Role::Assistant, "long"), (Role::User, "and now?")];
    let messages = messages.map(|(role, text)| Message::text(role, text));
    vec![started(messages.to_vec()), EventKind::CompactionStarted(summary)]
}

fn compacted() -> Vec<EventKind> {
    let messages = [(Role::User, "and now?"), (Role::Assistant, "short"), (Role::System, "go on")];
    let done = CompactionDone {
        message: MessageId::new("summary_1"),
        summary: "short".to_owned(),
        messages: messages.map(|(role, text)| Message::text(role, text)).to_vec(),
        tokens_before: 150_000,
        tokens_after: 80_000,
        usage: Usage { prompt: 12_000, completion: 800, cost_usd: 0.5, ..Usage::default() },
    };
    let notice = EventKind::Notice { text: "It is shorter now.".to_owned() };
    let answer = said(Message::text(Role::Assistant, "because"));
    let rest = [EventKind::CompactionDone(done), notice, counted(1), counted(2), answer, finished("because")];
    begun().into_iter().chain(rest).collect()
}

/// Names and data of the stream of a run.
async fn stream(path: &str, events: Vec<EventKind>) -> Vec<(String, Value)> {
    let world = World::new(Config::default(), Act::Play(events)).await;
    let body = json!({"ask": "and now?", "stream": true, "conversation_history": null, "issue_type": "Crash",
        "investigation_result": {"result": "x"}});
    events_of(world.post(path, &body.to_string())).await
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn a_compaction_is_announced_and_counted() {
    let events = stream("/api/chat", compacted()).await;
    assert_eq!(
        names(&events),
        [
            "conversation_history_compaction_start",
            "conversation_history_compacted",
            "ai_message",
            "token_count",
            "token_count",
            "ai_answer_end",
        ]
    );
    let before = json!({
        "initial_tokens": 150_000, "num_messages": 4, "max_context_size": 200_000, "threshold_pct": 95,
    });
    let content = "Compacting conversation history (150000 tokens, 4 messages)...";
    assert_eq!(events[0].1, json!({"content": content, "metadata": before}));
    let done = &events[1].1;
    assert_eq!(done["content"], "The conversation history has been compacted from 150000 to 80000 tokens");
    assert_eq!(done["compaction_summary"], "short");
    let roles = |history: &Value| -> Vec<Value> {
        history.as_array().unwrap().iter().map(|message| message["role"].clone()).collect()
    };
    assert_eq!(roles(&done["messages"]), ["system", "user", "assistant", "system"]);
    assert_eq!(
        done["metadata"],
        json!({
            "initial_tokens": 150_000, "compacted_tokens": 80_000, "compression_ratio_pct": 46.7,
            "num_messages_before": 4, "num_messages_after": 4, "max_context_size": 200_000, "threshold_pct": 95,
            "compaction_cost": {
                "total_cost": 0.5, "prompt_tokens": 12_000, "completion_tokens": 800, "total_tokens": 12_800,
                "cached_tokens": null, "cache_creation_tokens": null,
            },
        })
    );
    assert_eq!(events[2].1, json!({"content": "It is shorter now."}));
    let kept = roles(&events[5].1["conversation_history"]);
    assert_eq!(kept, ["system", "user", "assistant", "system", "assistant"]);
}

#[tokio::test]
async fn a_compaction_that_fails_is_told_and_a_conversation_that_is_too_long_is_an_error() {
    let failed = |reason: &str| EventKind::CompactionFailed {
        message: MessageId::new("summary_1"),
        reason: reason.to_owned(),
    };
    let message = "Start a new conversation.".to_owned();
    let too_long = EventKind::RunFailed { code: FailureCode::ContextTooLong, message };
    let run: Vec<_> = begun().into_iter().chain([failed("no reply"), too_long]).collect();
    let events = stream("/api/chat", run.clone()).await;
    assert_eq!(names(&events), ["conversation_history_compaction_start", "ai_message", "error"]);
    let told = "The conversation history could not be compacted: no reply";
    assert_eq!(events[1].1, json!({"content": told}));
    assert_eq!(
        (&events[2].1["error_code"], &events[2].1["msg"]),
        (&json!(1), &json!("Start a new conversation."))
    );

    let world = World::new(Config::default(), Act::Play(run)).await;
    let (status, body) = reply(world.ask(r#"{"ask": "and now?"}"#)).await;
    assert_eq!(status, 413, "{body}");
}
