//! Tools that the client runs: pause and come back, or go on at once.

#![cfg(test)]

use harness::{
    client::{self, Frame},
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};

struct Bench {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
}

impl Bench {
    async fn start() -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let list =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
        let sleuth = Start::serve().models(&list).unwrap().start().await.unwrap();
        Self { openai, sleuth }
    }

    async fn frames(&self, body: &Value) -> Vec<Frame> {
        client::stream(&self.sleuth.url("/api/chat").unwrap(), body).await.unwrap()
    }

    async fn status(&self, body: &Value) -> (u16, Value) {
        let (status, body) = client::post(&self.sleuth.url("/api/chat").unwrap(), body).await.unwrap();
        (status.as_u16(), body)
    }
}

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

fn chart(mode: &str) -> Value {
    json!({ "name": "render_chart", "description": "Draws", "mode": mode, "parameters": { "type": "object" } })
}

fn ask(calls: &[Value]) -> String {
    format!("draw FAKE_LLM{}", json!({ "steps": [calls], "answer": "drawn" }))
}

fn draw(metric: &str) -> Value {
    json!({ "name": "render_chart", "args": { "metric": metric } })
}

#[tokio::test]
async fn a_run_pauses_for_the_client_and_goes_on_with_its_results() {
    let bench = Bench::start().await;
    let echo = json!({ "name": "bash", "args": { "command": "echo hi", "suggested_prefixes": ["echo"] } });
    let question = ask(&[draw("cpu"), echo, draw("memory")]);
    let body = json!({ "ask": question, "stream": true, "frontend_tools": [chart("pause")] });
    let first = bench.frames(&body).await;
    let order = [
        "token_count",
        "start_tool_calling",
        "start_tool_calling",
        "start_tool_calling",
        "tool_calling_result",
        "token_count",
        "approval_required",
    ];
    assert_eq!(names(&first), order);
    let paused = &first.last().unwrap().data;
    assert_eq!((&paused["content"], &paused["analysis"]), (&Value::Null, &Value::Null));
    assert_eq!((&paused["requires_approval"], &paused["pending_approvals"]), (&json!(true), &json!([])));
    let pending = paused["pending_frontend_tool_calls"].as_array().unwrap();
    assert_eq!(pending.len(), 2);
    assert_eq!(pending[0]["tool_name"], "render_chart");
    assert_eq!(pending[0]["arguments"], json!({ "metric": "cpu" }));
    let marked = paused["conversation_history"].to_string().matches("\"pending_frontend\":true").count();
    assert_eq!(marked, 2);

    let results: Vec<_> = pending
        .iter()
        .map(|call| json!({ "tool_call_id": call["tool_call_id"], "tool_name": "render_chart", "result": "{\"ok\":true}" }))
        .collect();
    let resume = json!({
        "stream": true, "frontend_tools": [chart("pause")], "frontend_tool_results": results,
        "conversation_history": paused["conversation_history"],
    });
    let second = bench.frames(&resume).await;
    assert_eq!(
        names(&second),
        ["tool_calling_result", "tool_calling_result", "token_count", "ai_answer_end"]
    );
    assert_eq!(second[0].data["description"], "Frontend tool: render_chart");
    assert_eq!(second[0].data["result"]["data"], "{\"ok\":true}");
    assert_eq!(second[0].data["result"]["status"], "success");
    let end = &second.last().unwrap().data;
    assert_eq!(end["analysis"], "drawn");
    assert!(!end["conversation_history"].to_string().contains("pending_frontend"), "{end}");

    // The provider saw each call answered, with the raw text of the client.
    let asked = bench.openai.requests();
    let messages = asked.last().unwrap().body["messages"].as_array().unwrap().clone();
    let raw = messages.iter().filter(|message| message["content"] == "{\"ok\":true}").count();
    assert_eq!(raw, 2, "{messages:#?}");
}

#[tokio::test]
async fn what_the_client_does_not_bring_is_an_error_result() {
    let bench = Bench::start().await;
    let body = json!({
        "ask": ask(&[draw("cpu"), draw("memory")]), "stream": true, "frontend_tools": [chart("pause")],
    });
    let paused = bench.frames(&body).await.pop().unwrap().data;
    let id = &paused["pending_frontend_tool_calls"][0]["tool_call_id"];
    let resume = json!({
        "ask": "", "stream": true, "frontend_tools": [chart("pause")],
        "conversation_history": paused["conversation_history"],
        "frontend_tool_results": [
            { "tool_call_id": id, "tool_name": "render_chart", "result": "ok" },
            { "tool_call_id": "no_such_call", "tool_name": "render_chart", "result": "ignored" },
        ],
    });
    let frames = bench.frames(&resume).await;
    let statuses: Vec<_> =
        frames.iter().filter_map(|frame| frame.data["result"]["status"].as_str()).collect();
    assert_eq!(statuses, ["success", "error"]);
    assert_eq!(frames.last().unwrap().event, "ai_answer_end");

    let moved_on = json!({
        "ask": "never mind FAKE_LLM{\"answer\": \"fine\"}", "stream": true,
        "conversation_history": paused["conversation_history"],
    });
    let frames = bench.frames(&moved_on).await;
    let order = ["tool_calling_result", "tool_calling_result", "token_count", "ai_answer_end"];
    assert_eq!(names(&frames), order);
    assert_eq!(frames[0].data["result"]["status"], "error");
    assert_eq!(frames[3].data["analysis"], "fine");
}

#[tokio::test]
async fn a_noop_tool_is_answered_at_once_streamed_or_not() {
    let bench = Bench::start().await;
    let mut tool = chart("noop");
    tool["noop_response"] = "Navigated.".into();
    let body = json!({ "ask": ask(&[draw("cpu")]), "stream": true, "frontend_tools": [tool.clone()] });
    let frames = bench.frames(&body).await;
    let result = frames.iter().find(|frame| frame.event == "tool_calling_result").unwrap();
    assert_eq!(result.data["result"]["data"], "Navigated.");
    assert_eq!(frames.last().unwrap().event, "ai_answer_end");
    let body = json!({ "ask": ask(&[draw("cpu")]), "frontend_tools": [tool] });
    let (status, reply) = bench.status(&body).await;
    assert_eq!((status, &reply["analysis"]), (200, &json!("drawn")));
}

#[tokio::test]
async fn what_cannot_be_offered_is_refused() {
    let bench = Bench::start().await;
    let with = |tools: Value| json!({ "ask": "x", "stream": true, "frontend_tools": tools });
    let mut bash = chart("pause");
    bash["name"] = "bash".into();
    for (body, status, part) in [
        (json!({ "ask": "x", "frontend_tools": [chart("pause")] }), 400, "stream"),
        (with(json!([bash])), 400, "bash"),
        (with(json!([chart("pause"), chart("noop")])), 400, "render_chart"),
        (with(json!([{ "name": "x" }])), 422, "description"),
        (with(json!([{ "name": "x", "description": "y", "mode": "later" }])), 422, "'pause' or 'noop'"),
        (with(json!([{ "name": "x", "description": "y", "parameters": [] }])), 422, "parameters"),
        (with(json!(["x"])), 422, "frontend_tools"),
        (with(json!({})), 422, "frontend_tools"),
    ] {
        let (got, answer) = bench.status(&body).await;
        assert_eq!(got, status, "{body}: {answer}");
        assert!(answer["detail"].to_string().contains(part), "{body}: {answer}");
    }
    let object = json!({ "tool_call_id": "a", "tool_name": "b", "result": { "ok": true } });
    let body = json!({ "ask": "", "stream": true, "frontend_tool_results": [object] });
    let (status, answer) = bench.status(&body).await;
    assert_eq!(status, 422);
    assert_eq!(answer["detail"][0]["loc"], json!(["body", "frontend_tool_results", 0, "result"]));
    let nothing = json!({ "tool_call_id": "a", "tool_name": "b", "result": "ok" });
    let body = json!({ "ask": "", "stream": true, "frontend_tool_results": [nothing] });
    let (status, answer) = bench.status(&body).await;
    assert_eq!(status, 400, "{answer}");
}
