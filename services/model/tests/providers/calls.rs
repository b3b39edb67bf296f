//! Calls of both providers' APIs, over real sockets, to servers that answer well and badly.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{CallId, Message, Part, Role, Thinking};
use futures_util::StreamExt;
use harness::models::{Anthropic, Api, OpenAi, Scripted};
use model::{
    Catalogue, Delta, Error, MALFORMED_ARGUMENTS, Model, Outgoing, Reply, Request, Settings, ToolSpec,
};
use serde_json::{Value, json};

use crate::builtin::builtin;

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn quick() -> Settings {
    Settings {
        request_timeout: 20 * SECOND,
        idle_timeout: 20 * SECOND,
        rate_limit_wait: Duration::from_millis(300),
        first_pause: Duration::from_millis(2),
        longest_pause: Duration::from_millis(20),
        ..Settings::default()
    }
}

pub(crate) fn model<A: Api>(server: &Scripted<A>, settings: Settings) -> Arc<dyn Model> {
    let list = json!({"m": {
        "model": format!("{}/scripted", A::NAME), "api_key": "sk-secret", "base_url": server.url(),
        "input_cost_per_token": 0.5, "output_cost_per_token": 2, "temperature": 0.25,
        "extra_headers": {"x-team": "ops"},
    }});
    let catalogue = Catalogue::load(Some(&list.to_string()), &|_| None, settings, builtin()).unwrap();
    catalogue.get(Some("m")).unwrap()
}

pub(crate) fn ask(script: &Value) -> Request {
    let bash = ToolSpec {
        name: "bash".into(),
        description: "Runs a command".into(),
        parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    };
    Request {
        system: "You investigate.".into(),
        messages: vec![Message::text(Role::User, format!("go FAKE_LLM{script}"))],
        tools: vec![bash].into(),
        ..Request::default()
    }
}

/// The text and the thinking that streamed, and the reply.
pub(crate) async fn answer(model: &dyn Model, request: Request) -> Result<(String, String, Reply), Error> {
    let (mut text, mut thinking) = (String::new(), String::new());
    let mut deltas = model.call(request).await?;
    while let Some(delta) = deltas.next().await {
        match delta? {
            Delta::Text(piece) => text += &piece,
            Delta::Thinking(piece) => thinking += &piece,
            Delta::Done(reply) => {
                assert!(deltas.next().await.is_none(), "nothing follows a reply");
                return Ok((text, thinking, *reply));
            }
        }
    }
    panic!("a stream ends with a reply or an error");
}

async fn replies<A: Api>() {
    let server = Scripted::<A>::start().await.unwrap();
    let model = model(&server, quick());
    let bash = |t: usize| format!(r#"{{"command":"echo r0t{t}","suggested_prefixes":["echo"]}}"#);
    let hard = "réponse 日本😀 \u{2028} \"q\" \\";
    let cases = [
        (json!({}), "The answer is 42.", "", vec![]),
        (json!({"thinking": "hm, 日本", "answer": hard}), hard, "hm, 日本", vec![]),
        (json!({"thinking": hard, "answer": hard, "cut": "chunk"}), hard, hard, vec![]),
        (json!({"rounds": 1}), "", "", vec![bash(0)]),
        (json!({"rounds": 1, "tools": 3, "say": "So."}), "So.", "", vec![bash(0), bash(1), bash(2)]),
        (
            json!({"rounds": 1, "tools": 2, "say": hard, "thinking": hard, "cut": "chunk"}),
            hard,
            hard,
            vec![bash(0), bash(1)],
        ),
        (
            json!({"rounds": 1, "tools": 2, "thinking": "hm", "say": "So.", "whole": true}),
            "So.",
            "hm",
            vec![bash(0), bash(1)],
        ),
        (json!({"chunk_ms": 30, "latency_ms": 30, "answer": hard}), hard, "", vec![]),
    ];
    for (script, text, thinking, arguments) in cases {
        let (streamed, thought, reply) = answer(&*model, ask(&script)).await.unwrap();
        assert_eq!((streamed.as_str(), thought.as_str()), (text, thinking), "{script}");
        assert_eq!(reply.message.joined_text(), text, "{script}");
        assert_eq!(reply.message.joined_thinking().unwrap_or_default(), thinking, "{script}");
        let ids: Vec<_> = reply.calls().iter().map(|call| call.id.to_string()).collect();
        let expected: Vec<_> = (0..arguments.len()).map(|t| format!("call_m2r0t{t}")).collect();
        assert_eq!(ids, expected, "{script}");
        let read: Vec<_> = reply.calls().iter().map(|call| call.arguments.clone()).collect();
        assert_eq!(read, arguments, "{script}");
        let reason = if ids.is_empty() { "stop" } else { "tool_calls" };
        assert_eq!(reply.finish_reason, reason, "{script}");
    }
    let counted = json!({"prompt_tokens": 100, "completion_tokens": 10});
    let (_, _, reply) = answer(&*model, ask(&counted)).await.unwrap();
    assert_eq!((reply.usage.prompt, reply.usage.completion, reply.usage.cost_usd), (100, 10, 70.0));
}

#[tokio::test]
async fn replies_of_chat_completions() {
    replies::<OpenAi>().await;
}

#[tokio::test]
async fn replies_of_messages() {
    replies::<Anthropic>().await;
}

async fn failures<A: Api>() {
    let server = Scripted::<A>::start().await.unwrap();
    let model = model(&server, Settings { idle_timeout: SECOND, ..quick() });
    let long = "long ".repeat(50);
    let cases = [
        (json!({"status": 400}), "rejected", "scripted failure", 1..=1),
        (json!({"status": 401}), "unauthenticated", "Incorrect API key provided: scripted failure", 1..=1),
        (json!({"status": 403}), "unauthenticated", "scripted failure", 1..=1),
        (json!({"status": 429}), "rate_limited", "scripted failure", 4..=200),
        (json!({"status": 429, "retry_after": 9000}), "rate_limited", "scripted failure", 1..=1),
        (json!({"status": 500}), "unavailable", "scripted failure", 3..=3),
        (json!({"status": 529}), "unavailable", "scripted failure", 3..=3),
        (json!({"error_event": "busy now"}), "unavailable", "busy now", 3..=3),
        (json!({"hang": true}), "unavailable", "sent nothing for 1 s", 1..=1),
        (json!({"chunk_ms": 5000, "answer": long}), "unavailable", "sent nothing for 1 s", 1..=1),
        (json!({"break_after": 1}), "unavailable", "broke off", 3..=3),
        (json!({"break_after": 6, "answer": long}), "unavailable", "broke off", 1..=1),
        (json!({"malformed": true}), "malformed", "sent what is no", 1..=1),
        (json!({"malformed": true, "whole": true}), "malformed", "sent what is no", 1..=1),
    ];
    for (script, kind, text, tries) in cases {
        let before = server.requests().len();
        let error = answer(&*model, ask(&script)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{script}: {error}");
        assert!(error.to_string().contains(text), "{script}: {error}");
        let tried = server.requests().len() - before;
        assert!(tries.contains(&tried), "{script}: tried {tried} times");
        assert!(server.until_idle(SECOND).await, "{script}");
    }
}

#[tokio::test]
async fn failures_of_chat_completions() {
    failures::<OpenAi>().await;
}

#[tokio::test]
async fn failures_of_messages() {
    failures::<Anthropic>().await;
}

#[tokio::test]
async fn what_passes_is_tried_again_when_the_provider_says() {
    let server = Scripted::<OpenAi>::start().await.unwrap();
    let model = model(&server, quick());
    for (script, at_least) in [
        (json!({"fail_times": 2, "status": 429, "retry_after": 60}), Duration::from_millis(120)),
        (json!({"fail_times": 2, "status": 500}), Duration::ZERO),
    ] {
        let (before, begun) = (server.requests().len(), Instant::now());
        let (text, ..) = answer(&*model, ask(&script)).await.unwrap();
        assert_eq!((text.as_str(), server.requests().len() - before), ("The answer is 42.", 3), "{script}");
        assert!(begun.elapsed() >= at_least, "{script}: {:?}", begun.elapsed());
    }
    let error = answer(&*model, ask(&json!({"status": 429, "retry_after": 9000}))).await.unwrap_err();
    let wait = Some(Duration::from_secs(9));
    assert!(matches!(error, Error::RateLimited { retry_after, .. } if retry_after == wait), "{error:?}");
}

#[tokio::test]
async fn a_call_has_a_deadline_however_lively_it_is() {
    let server = Scripted::<Anthropic>::start().await.unwrap();
    let settings = Settings { request_timeout: Duration::from_millis(300), ..quick() };
    let script = json!({"chunk_ms": 50, "answer": "long ".repeat(50)});
    let error = answer(&*model(&server, settings), ask(&script)).await.unwrap_err();
    assert_eq!(error.to_string(), "the model call took longer than 0.3 s");
}

#[tokio::test]
async fn a_server_that_is_gone_is_named_without_secrets() {
    let server = Scripted::<OpenAi>::start().await.unwrap();
    let (model, url) = (model(&server, quick()), server.url());
    drop(server);
    let error = answer(&*model, ask(&json!({}))).await.unwrap_err();
    let host = url.trim_start_matches("http://").trim_end_matches("/v1");
    let expected = format!("the model provider at {host} cannot be reached: ");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

async fn dropping<A: Api>() {
    let server = Scripted::<A>::start().await.unwrap();
    let model = model(&server, quick());
    {
        let asked = model.call(ask(&json!({"hang": true})));
        tokio::select! {
            _ = asked => panic!("the server hangs"),
            reached = server.until_in_flight(1, SECOND) => assert!(reached),
        }
    }
    assert!(server.until_idle(SECOND).await, "an unanswered call ends");
    let slow = json!({"chunk_ms": 20, "answer": "long ".repeat(1000)});
    let mut deltas = model.call(ask(&slow)).await.unwrap();
    assert!(matches!(deltas.next().await, Some(Ok(Delta::Text(_)))));
    assert_eq!(server.in_flight(), 1);
    drop(deltas);
    assert!(server.until_idle(SECOND).await, "a streaming call ends");
}

#[tokio::test]
async fn dropping_a_call_ends_it_at_the_server() {
    dropping::<OpenAi>().await;
    dropping::<Anthropic>().await;
}

#[tokio::test]
async fn calls_in_flight_have_a_ceiling() {
    let server = Scripted::<OpenAi>::start().await.unwrap();
    let model = model(&server, Settings { calls_per_model: Some(1), ..quick() });
    let held = model.call(ask(&json!({"chunk_ms": 20, "answer": "long ".repeat(500)}))).await.unwrap();
    let error = answer(&*model, ask(&json!({}))).await.unwrap_err();
    assert_eq!(error.kind(), "rate_limited");
    assert!(error.to_string().contains("Sleuth's own ceiling of 1 calls"), "{error}");
    drop(held);
    answer(&*model, ask(&json!({}))).await.unwrap();
}

/// A round of tools: what the model said goes back to it, with the result.
async fn round<A: Api>() -> (Value, Reply) {
    let server = Scripted::<A>::start().await.unwrap();
    let outgoing = Outgoing::new(|headers| {
        headers.insert("traceparent", "00-1-2-01".parse().unwrap());
    });
    let model = model(&server, Settings { outgoing, ..quick() });
    let mut request = ask(&json!({"rounds": 1, "tools": 2, "thinking": "hm", "say": "So."}));
    request.messages.insert(0, Message::text(Role::System, "Be brief."));
    let (_, _, asked) = answer(&*model, request.clone()).await.unwrap();
    request.messages.push(asked.message.clone());
    for call in asked.calls() {
        request.messages.push(Message::tool(call.id.clone(), &call.name, "out"));
    }
    let (text, ..) = answer(&*model, request).await.unwrap();
    assert_eq!(text, "The answer is 42.");
    let second = server.requests().remove(1);
    assert_eq!(second.headers["traceparent"], "00-1-2-01");
    assert_eq!(second.headers["x-team"], "ops");
    assert_eq!(second.body["temperature"], 0.25);
    assert_eq!((&second.body["model"], &second.body["stream"]), (&json!("scripted"), &json!(true)));
    (second.body, asked)
}

#[tokio::test]
async fn a_round_of_chat_completions() {
    let (body, _) = round::<OpenAi>().await;
    let roles: Vec<_> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(body["messages"][0]["content"], "You investigate.\n\nBe brief.");
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn a_round_of_messages() {
    let (body, asked) = round::<Anthropic>().await;
    let signed = Thinking { text: "hm".into(), signature: Some("scripted-signature".into()), redacted: None };
    assert_eq!(asked.message.parts[0], Part::Thinking(signed));
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "scripted-signature"});
    assert_eq!(body["messages"][1]["content"][0], thinking, "thinking goes back unchanged");
    assert_eq!(body["messages"].as_array().unwrap().len(), 3, "results are one turn");
    let mark = json!({"type": "ephemeral"});
    for end in ["/system/1", "/tools/0", "/messages/2/content/1"] {
        assert_eq!(body.pointer(end).unwrap()["cache_control"], mark, "{end}");
    }
    assert_eq!(body.to_string().matches("cache_control").count(), 3);
}

#[tokio::test]
async fn arguments_that_are_not_json_are_kept_and_ids_are_unique() {
    let server = Scripted::<OpenAi>::start().await.unwrap();
    let model = model(&server, quick());
    let steps = json!([[{"name": "bash", "args": "{\"command\": "}, {"name": "bash", "args": ""}]]);
    let mut request = ask(&json!({"steps": steps}));
    let mut earlier = Message::text(Role::Assistant, "");
    let taken = CallId::new("call_m4r0t0");
    earlier.tool_calls.push(domain::ToolCall {
        id: taken.clone(),
        name: "bash".into(),
        arguments: "{}".into(),
    });
    request.messages.splice(0..0, [earlier, Message::tool(taken.clone(), "bash", "out")]);
    let (_, _, reply) = answer(&*model, request).await.unwrap();
    let arguments: Vec<Value> =
        reply.calls().iter().map(|call| serde_json::from_str(&call.arguments).unwrap()).collect();
    assert_eq!(arguments, [json!({MALFORMED_ARGUMENTS: "{\"command\": "}), json!({})]);
    assert_ne!(reply.calls()[0].id, taken);
    assert_eq!(reply.calls()[1].id.as_str(), "call_m4r0t1");
}
