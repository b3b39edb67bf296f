//! What clients of the HolmesGPT dialect get for a run.

use std::{collections::HashMap, time::Duration};

use domain::{AgentId, EventKind, FailureCode, Gate, Message, Role, Run, RunStarted, ToolResult};
use gateway::Config;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{
    agent::{Act, Told},
    conversation::{call, counted, finished, plain, started, with_tools},
    world::{World, events, header, json as reply},
};

/// The texts that models read are the domain's: here only their place counts.
fn without_tool_messages(answer: String) -> String {
    let mut calls = HashMap::new();
    with_tools().into_iter().fold(answer, |answer, event| match event {
        EventKind::ToolStarted { call, .. } => {
            calls.insert(call.id.clone(), call);
            answer
        }
        EventKind::ToolFinished { call, result } => {
            let text = Run::tool_message(&calls[&call], &result).joined_text();
            let text = serde_json::to_string(&text).unwrap();
            assert!(answer.contains(&text), "{call} is not in {answer}");
            answer.replace(&text, &format!("\"what the model read of {call}\""))
        }
        _ => answer,
    })
}

#[tokio::test]
async fn a_run_with_tools_is_this_stream() {
    let world = World::new(Config::default(), Act::Play(with_tools())).await;
    let ask = world.ask(r#"{"ask": "whý?", "stream": true}"#).header("x-request-id", "request-1");
    let response = ask.send().await.unwrap();
    assert_eq!(response.status(), 200);
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
        ("x-request-id", "request-1"),
        ("x-sleuth-run-id", "run-1"),
    ] {
        assert_eq!(header(&response, name), Some(value));
    }
    let text = without_tool_messages(response.text().await.unwrap());
    assert_eq!(text, include_str!("tools.sse"));
}

#[tokio::test]
async fn a_run_with_tools_is_this_json() {
    let world = World::new(Config::default(), Act::Play(with_tools())).await;
    let ask = world.ask(r#"{"ask": "whý?"}"#).header("x-request-id", "request-1");
    let text = without_tool_messages(ask.send().await.unwrap().text().await.unwrap());
    let [body, expected] =
        [&text, include_str!("tools.json")].map(|text| serde_json::from_str::<Value>(text).unwrap());
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_question_reaches_the_agent_whole() {
    let world = World::new(Config::default(), Act::Play(plain())).await;
    let body = json!({
        "ask": "and now?",
        "model": "second",
        "additional_system_prompt": "Be terse.",
        "behavior_controls": {"todowrite_reminder": false, "ai_safety": "yes"},
        "response_format": {"type": "json_object"},
        "images": ["data:image/png;base64,AA==", {"url": "https://a.example/x", "detail": "low"}],
        "conversation_history": [
            {"role": "system", "content": "You are kind.", "token_count": 4},
            {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "video", "x": 1}]},
            {"role": "assistant", "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}],
             "tool_calls": [{"id": "c1", "type": "function",
                             "function": {"name": "bash", "arguments": "{\"b\": 1, \"a\": 2}"}}]},
            {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "hi"},
        ],
    });
    assert_eq!(reply(world.ask(&body.to_string())).await.0, 200);

    let asked = world.agent.question();
    assert_eq!(asked.question, "and now?");
    assert_eq!(asked.model, "second");
    assert_eq!(asked.additional_system_prompt, "Be terse.");
    let controls = [("todowrite_reminder", false), ("ai_safety", true)];
    assert_eq!(asked.behavior_controls, controls.map(|(key, on)| (key.to_owned(), on)).into());
    assert_eq!(asked.response_format_json, r#"{"type":"json_object"}"#);
    assert_eq!(
        asked.images.iter().map(|image| image.url.as_str()).collect::<Vec<_>>(),
        ["data:image/png;base64,AA==", "https://a.example/x"]
    );
    let history: Vec<Message> =
        asked.history.into_iter().map(|message| message.try_into().unwrap()).collect();
    assert_eq!(
        history.iter().map(|message| message.role).collect::<Vec<_>>(),
        [Role::System, Role::User, Role::Assistant, Role::Tool]
    );
    assert_eq!(history[1].joined_text(), "look");
    assert_eq!(history[2].joined_thinking().as_deref(), Some("Hm."));
    assert_eq!(history[2].tool_calls[0].arguments, r#"{"b": 1, "a": 2}"#, "as it was shown");
    assert_eq!(history[3].answers.as_ref().unwrap().0.as_str(), "c1");
    for (message, sent) in history.iter().zip(body["conversation_history"].as_array().unwrap()) {
        assert_eq!(serde_json::from_str::<Value>(message.client_json.as_ref().unwrap()).unwrap(), *sent);
    }
}

#[tokio::test]
async fn a_client_gets_its_own_messages_back_unchanged() {
    let own = r#"{ "role":"system", "content":"Mine.", "token_count": 1.50, "x": [1,  2] }"#;
    let mut system = Message::text(Role::System, "Mine.");
    system.client_json = Some(own.to_owned());
    let said = Message::text(Role::Assistant, "Earlier.");
    let events = vec![started(vec![system, said, Message::text(Role::User, "why?")]), finished("so")];
    let world = World::new(Config::default(), Act::Play(events)).await;
    let answer = world.ask(r#"{"ask": "why?"}"#).send().await.unwrap().text().await.unwrap();
    assert!(answer.contains(own), "{answer}");
    assert!(answer.contains(r#""follow_up_actions":[]"#), "only a first answer has follow-ups: {answer}");
}

#[tokio::test]
async fn the_placeholder_of_the_system_prompt_is_not_sent_to_the_agent() {
    let world = World::new(Config::default(), Act::Play(plain())).await;
    let (_, first) = reply(world.ask(r#"{"ask": "why?"}"#)).await;
    let history = &first["conversation_history"];
    assert_eq!(history[0]["role"], "system");
    world.agent.asked.lock().unwrap().clear();

    let again = json!({"ask": "and?", "conversation_history": history}).to_string();
    assert_eq!(reply(world.ask(&again)).await.0, 200);
    let roles: Vec<_> = world.agent.question().history.iter().map(wire::agent::Message::role).collect();
    assert_eq!(roles, [wire::agent::Role::User, wire::agent::Role::Assistant]);
}

#[tokio::test]
async fn failures_have_a_code_in_streams_and_a_status_elsewhere() {
    let failed = |code| EventKind::RunFailed { code, message: "the provider's words".to_owned() };
    let cancelled = EventKind::RunCancelled { reason: "by hand".to_owned() };
    let same = "the provider's words";
    let rows = [
        (failed(FailureCode::RateLimited { retry_after: None }), 5204, "Rate limit exceeded", same, 429),
        (failed(FailureCode::Unauthenticated), 1, same, same, 401),
        (failed(FailureCode::Rejected), 1, same, same, 500),
        (failed(FailureCode::ModelUnavailable), 1, same, same, 500),
        (failed(FailureCode::MalformedReply), 1, same, same, 500),
        (failed(FailureCode::Deadline), 1, same, same, 500),
        (failed(FailureCode::Internal), 1, same, same, 500),
        (cancelled, 1, "The run was cancelled: by hand", "The run was cancelled: by hand", 500),
    ];
    for (end, code, msg, description, status) in rows {
        let name = format!("{end:?}");
        let world = World::new(Config::default(), Act::Play(vec![started(Vec::new()), end])).await;
        assert_eq!(
            reply(world.ask(r#"{"ask": "x"}"#)).await,
            (status, json!({"detail": description})),
            "{name}"
        );

        let stream = world.ask(r#"{"ask": "x", "stream": true}"#).send().await.unwrap();
        assert_eq!(stream.status(), 200);
        let text = stream.text().await.unwrap();
        let data = text.strip_prefix("event: error\ndata: ").expect(&text);
        let data = data.strip_suffix("\nid: run-1:2\n\n").expect(&text);
        let error = json!({"description": description, "error_code": code, "msg": msg, "success": false});
        assert_eq!(serde_json::from_str::<Value>(data).unwrap(), error, "{name}");
    }
}

#[tokio::test]
async fn a_provider_that_says_when_to_come_back_is_heard() {
    for (retry_after, header_says) in [(Some(Duration::from_secs(17)), Some("17")), (None, None)] {
        let failed = EventKind::RunFailed {
            code: FailureCode::RateLimited { retry_after },
            message: "slow down".to_owned(),
        };
        let world = World::new(Config::default(), Act::Play(vec![started(Vec::new()), failed])).await;
        let response = world.ask(r#"{"ask": "x"}"#).send().await.unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(header(&response, "retry-after"), header_says);
    }
}

#[tokio::test]
async fn refusals_of_the_agent_are_statuses_before_any_stream() {
    for (code, status, detail, retry) in [
        (Code::InvalidArgument, 400, "unknown model: x; known models: first", None),
        (Code::ResourceExhausted, 429, "too many runs", Some("5")),
        (Code::Unavailable, 503, "The agent cannot be reached", Some("5")),
        (Code::Internal, 500, "The agent failed", None),
    ] {
        let refusal = Status::new(code, if status < 500 { detail } else { "secret detail" });
        let world = World::new(Config::default(), Act::Refuse(refusal)).await;
        for body in [r#"{"ask": "x", "stream": true}"#, r#"{"ask": "x"}"#] {
            let response = world.ask(body).send().await.unwrap();
            assert_eq!(response.status(), status);
            assert_eq!(header(&response, "retry-after"), retry);
            let body = response.text().await.unwrap();
            assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!({"detail": detail}));
        }
    }
}

#[tokio::test]
async fn an_unknown_model_falls_back_only_if_configured() {
    for (falls_back, asked, expected) in
        [(false, "nope", "nope"), (true, "nope", ""), (true, "second", "second"), (true, "", "")]
    {
        let config = Config { unknown_model_falls_back: falls_back, ..Config::default() };
        let world = World::new(config, Act::Play(plain())).await;
        reply(world.ask(&json!({"ask": "x", "model": asked}).to_string())).await;
        assert_eq!(world.agent.question().model, expected);
    }
}

#[tokio::test]
async fn what_agents_below_have_used_is_counted_and_nothing_else_of_them_is_told() {
    let EventKind::RunStarted(main) = started(Vec::new()) else { panic!() };
    let task = call("c1", "agent", r#"{"task":"look"}"#);
    let below = RunStarted { call: Some(task.id.clone()), ..main };
    let at = |agent: &str, kind| {
        let parent = (agent != "main").then(AgentId::main);
        Told { agent: AgentId::new(agent), parent, kind }
    };
    let starts = EventKind::ToolStarted {
        call: task.clone(),
        description: "look".to_owned(),
        toolset: None,
        cluster: None,
        gate: Gate::Open,
        by: None,
    };
    let kinds = vec![
        at("main", started(Vec::new())),
        at("main", counted(1)),
        at("main", starts),
        at("a1", EventKind::RunStarted(below)),
        at("a1", counted(2)),
        at("a1", finished("four")),
        at("main", EventKind::ToolFinished { call: task.id, result: ToolResult::success("four") }),
        at("main", counted(1)),
        at("main", finished("all")),
    ];
    let world = World::new(Config::default(), Act::Tell(kinds)).await;
    let events = events(world.ask(r#"{"ask": "x", "stream": true}"#)).await;
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    let expected =
        ["token_count", "start_tool_calling", "tool_calling_result", "token_count", "ai_answer_end"];
    assert_eq!(names, expected);
    let cost = |at: usize| &events[at].1["metadata"]["costs"]["total_tokens"];
    assert_eq!([cost(0), cost(3), cost(4)], [&json!(15), &json!(45), &json!(45)]);
}
