//! Whatever a client sends, it gets an answer that says what is wrong: no 500, no hang, and the server goes on.
//!
//! Every member of a good body of every route is replaced by what is wrong in type, size or meaning.

#![cfg(test)]

use std::{fmt::Write as _, time::Duration};

use futures_util::{StreamExt as _, stream};
use harness::{
    models::{Script, ScriptedOpenAi},
    process::{Sleuth, Start},
};
use reqwest::Client;
use serde_json::{Value, json};

/// More than any answer may take; one that hangs does not come.
const DEADLINE: Duration = Duration::from_secs(60);
/// Requests at the same time.
const TOGETHER: usize = 16;
/// Stands for the place of a value that JSON text can have and [`Value`] cannot.
const HOLE: &str = "@hole@";

/// Good bodies, with every field of their route.
fn bodies() -> Vec<(&'static str, Value)> {
    let history = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://a.example/x", "detail": "low"}},
        ]},
        {"role": "assistant", "content": "x", "reasoning_content": "y", "thinking_blocks": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
        ], "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "out"},
    ]);
    let tools = json!([{"name": "bash", "description": "d", "output": "o"}]);
    let chat = json!({
        "ask": "why?", "conversation_history": history, "model": "gpt", "stream": false, "images": [
            "data:image/png;base64,AAAA", {"url": "https://a.example/x.png", "detail": "high", "format": "image/png"},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": false, "schema": {"type": "object"}}},
        "additional_system_prompt": "more", "behavior_controls": {"intro": true}, "enable_tool_approval": false,
        "tool_decisions": [{"tool_call_id": "c1", "approved": true, "save_prefixes": ["ls"], "feedback": "no"}],
        "frontend_tools": [{
            "name": "chart", "description": "d", "mode": "noop", "noop_response": "ok", "parameters": {"type": "object"},
        }],
        "frontend_tool_results": [{"tool_call_id": "c2", "tool_name": "chart", "result": "r"}],
    });
    let issue = json!({
        "source": "prometheus", "title": "t", "description": "d", "subject": {"name": "p", "kind": "Pod"}, "context": {"k": 1},
        "source_instance_id": "i", "sections": {"Cause": "why"}, "prompt_template": "{{ issue }}",
        "include_tool_calls": true, "include_tool_call_results": true, "model": "gpt",
    });
    let issue_chat = json!({
        "ask": "how?", "investigation_result": {"result": "x", "tools": tools}, "issue_type": "t",
        "conversation_history": history, "model": "gpt",
    });
    let check = json!({
        "ask": "healthy?", "resource": {"name": "w", "kind": "Deployment"}, "alert_history": true, "stored_instructions": true,
        "stored_instrucitons": true, "alert_history_since_hours": 12, "instructions": ["look"], "model": "gpt",
        "prompt_template": "{{ ask }}", "include_tool_calls": true, "include_tool_call_results": true,
    });
    let workload_chat = json!({
        "ask": "how?", "workload_health_result": {"analysis": "x", "tools": tools}, "resource": {"name": "w"},
        "conversation_history": history, "model": "gpt",
    });
    vec![
        ("/api/stream/chat", chat.clone()),
        ("/api/chat", chat),
        ("/api/stream/investigate", issue.clone()),
        ("/api/stream/issue_chat", issue_chat.clone()),
        ("/api/investigate", issue),
        ("/api/issue_chat", issue_chat),
        ("/api/workload_health_check", check),
        ("/api/workload_health_chat", workload_chat),
        ("/api/runs/run_x/cancel", json!({"reason": "r"})),
    ]
}

/// JSON texts that are hardly ever what is wanted.
const WRONG: [&str; 17] = [
    "null",
    "true",
    "-7",
    "1e999",
    "9007199254740993",
    "\"\"",
    "\"x\"",
    r#""\u0000\u0001\u001b[2J""#,
    r#""\ud800""#,
    r#""\udc00\ud800""#,
    "[]",
    "[null]",
    "[[]]",
    "{}",
    r#"{"":{"":[]}}"#,
    r#"{"\ud800":1}"#,
    r#""{% raw %}{{""#,
];

/// Such texts that are large.
fn wrong_and_large() -> [String; 3] {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    [deep(200), deep(100_000), format!("\"{}\"", "x".repeat(1 << 20))]
}

/// The places of all values in a body, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in members {
        let place = format!("{at}/{key}");
        places(value, &place, found);
        found.push(place);
    }
}

/// The body with this text in this place.
fn with(body: &Value, place: &str, text: &str) -> String {
    let mut body = body.clone();
    *body.pointer_mut(place).unwrap() = HOLE.into();
    body.to_string().replace(&format!("\"{HOLE}\""), text)
}

/// The body without a member.
fn without(body: &Value, place: &str) -> Option<String> {
    let mut body = body.clone();
    let (parent, member) = place.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap().as_object_mut()?.remove(member)?;
    Some(body.to_string())
}

async fn serve(model: &ScriptedOpenAi) -> Sleuth {
    let list = format!("gpt: {{model: openai/scripted, api_key: none, base_url: {}}}\n", model.url());
    Start::serve().models(&list).unwrap().start().await.unwrap()
}

fn client() -> Client {
    Client::builder().timeout(DEADLINE).build().unwrap()
}

/// What is wrong with the answer to a body, if anything.
async fn objection(client: &Client, server: &Sleuth, path: &str, id: &str, body: String) -> Option<String> {
    let shown: String = body.chars().take(2000).collect();
    let request = client.post(server.url(path).unwrap()).header("content-type", "application/json");
    let response = match request.header("x-request-id", id).body(body).send().await {
        Ok(response) => response,
        Err(error) => return Some(format!("{path}: {error}: {shown}")),
    };
    let status = response.status().as_u16();
    let kept = response.headers().get("x-request-id").is_some_and(|given| given == id);
    let text = response.text().await.unwrap_or_default();
    let detail = serde_json::from_str::<Value>(&text).map(|body| body["detail"].clone()).unwrap_or_default();
    let is_placed =
        |error: &Value| error["loc"][0] == "body" && error["type"].is_string() && error["msg"].is_string();
    let fits = match status {
        200 => true,
        400 | 404 | 413 => detail.is_string(),
        422 => match &detail {
            Value::Array(errors) => !errors.is_empty() && errors.iter().all(is_placed),
            other => other.is_string() && path.starts_with("/api/runs"),
        },
        _ => false,
    };
    let answer: String = text.chars().take(500).collect();
    (!kept || !fits).then(|| format!("{path}: {status} {answer}: {shown}"))
}

#[tokio::test]
async fn every_wrong_member_is_answered_and_none_is_a_failure() {
    let model = ScriptedOpenAi::start().await.unwrap();
    // An answer that fits a health check too.
    let verdict = json!({"workload_healthy": true, "root_cause_summary": "fine"});
    model.say_by_default(serde_json::from_value::<Script>(json!({"answer": verdict})).unwrap());
    let (server, client) = (serve(&model).await, client());
    let mut requests = Vec::new();
    for (path, body) in bodies() {
        let mut found = Vec::new();
        places(&body, "", &mut found);
        for place in found {
            requests.extend(without(&body, &place).map(|body| (path, body)));
            requests.extend(WRONG.iter().map(|wrong| (path, with(&body, &place, wrong))));
            if place.matches('/').count() == 1 {
                requests.extend(wrong_and_large().iter().map(|wrong| (path, with(&body, &place, wrong))));
            }
        }
        requests.extend(WRONG.iter().map(|wrong| (path, (*wrong).to_owned())));
        requests.extend(wrong_and_large().map(|wrong| (path, wrong)));
        let text = body.to_string();
        requests.extend((0..text.len()).step_by(97).map(|end| (path, text[..end].to_owned())));
    }
    let count = requests.len();
    let answers = stream::iter(requests.into_iter().enumerate()).map(|(at, (path, body))| {
        let (client, server) = (&client, &server);
        async move { objection(client, server, path, &format!("bad-{at}"), body).await }
    });
    let objections: Vec<_> =
        answers.buffer_unordered(TOGETHER).filter_map(async |found| found).collect().await;
    let shown = objections.iter().take(10).fold(String::new(), |mut text, found| {
        let _ = writeln!(text, "{found}\n");
        text
    });
    assert!(objections.is_empty(), "{} of {count} answers:\n{shown}", objections.len());

    // The server goes on, and its log says who sent what was wrong.
    let refused =
        client.post(server.url("/api/chat").unwrap()).header("x-request-id", "last-one").body("{").send();
    assert_eq!(refused.await.unwrap().status(), 422);
    let logged = |line: &String| line.contains("last-one") && line.contains("422");
    assert!(server.log().iter().any(logged), "{:#?}", server.log().iter().rev().take(5).collect::<Vec<_>>());
    assert_eq!(
        objection(&client, &server, "/api/chat", "good", json!({"ask": "why?"}).to_string()).await,
        None
    );
}

#[tokio::test]
async fn long_histories_are_answered_and_huge_bodies_refused() {
    let model = ScriptedOpenAi::start().await.unwrap();
    let (server, client) = (serve(&model).await, client());
    let turn = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "content": format!("turn {at}")})
    };
    let history: Vec<_> =
        std::iter::once(json!({"role": "system", "content": "x"})).chain((0..10_000).map(turn)).collect();
    let body = json!({"ask": "and now?", "conversation_history": history});
    let answer = client.post(server.url("/api/chat").unwrap()).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["conversation_history"].as_array().unwrap().len(), 10_003);

    let before = memory(&server);
    let huge = format!("{{\"ask\": \"{}\"}}", "x".repeat(50 << 20));
    for path in ["/api/chat", "/api/investigate", "/api/runs/run_x/cancel"] {
        let refused = client.post(server.url(path).unwrap()).body(huge.clone()).send().await.unwrap();
        assert_eq!(refused.status(), 413, "{path}");
        assert!(refused.json::<Value>().await.unwrap()["detail"].is_string(), "{path}");
    }
    let grown = memory(&server).saturating_sub(before);
    assert!(grown < 150 << 10, "{grown} KiB for bodies that were refused");
}

/// Resident memory of the server's process, in KiB.
fn memory(server: &Sleuth) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
