//! Answers in a form that the client asks for.

#![cfg(test)]

use harness::{client, models::ScriptedOpenAi, process::Start};
use serde_json::{Value, json};

fn form() -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "Health", "strict": true, "schema": {
        "type": "object", "additionalProperties": false, "required": ["is_healthy", "summary"],
        "properties": { "is_healthy": { "type": "boolean" }, "summary": { "type": "string" } },
    } } })
}

async fn ask(script: Value, format: Value) -> (u16, Value, ScriptedOpenAi) {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    let sleuth = Start::serve().models(&list).unwrap().start().await.unwrap();
    let body = json!({ "ask": format!("healthy? FAKE_LLM{script}"), "response_format": format });
    let (status, body) = client::post(&sleuth.url("/api/chat").unwrap(), &body).await.unwrap();
    (status.as_u16(), body, openai)
}

#[tokio::test]
async fn tools_are_used_before_the_form_is_asked_for() {
    let good = json!({ "is_healthy": true, "summary": "fine" });
    let (status, body, openai) = ask(json!({ "rounds": 1, "answer": good }), form()).await;
    assert_eq!(status, 200, "{body}");
    let analysis: Value = serde_json::from_str(body["analysis"].as_str().unwrap()).unwrap();
    assert_eq!(analysis, good);
    assert_eq!(body["tool_calls"].as_array().unwrap().len(), 1);
    let asked = openai.requests();
    assert_eq!(asked.len(), 2, "an answer that fits is not asked for again");
    assert!(asked.iter().all(|request| request.body.get("response_format").is_none()));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_then_reported() {
    let (status, body, openai) = ask(json!({ "answer": "All is fine." }), form()).await;
    assert_eq!(status, 500, "{body}");
    assert!(body["detail"].as_str().unwrap().contains("response_format"), "{body}");
    let asked = openai.requests();
    assert_eq!(asked.len(), 3);
    for request in &asked[1..] {
        assert_eq!(request.body["response_format"], form());
        assert!(request.body.get("tools").is_none());
        let note = request.body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(note.contains("All is fine."), "{note}");
    }
}

#[tokio::test]
async fn a_form_that_cannot_be_is_refused() {
    for bad in [
        json!({ "type": "xml" }),
        json!({ "type": "json_schema", "json_schema": { "schema": { "type": 7 } } }),
    ] {
        let (status, body, _) = ask(json!({}), bad.clone()).await;
        assert_eq!(status, 400, "{bad}: {body}");
        assert!(body["detail"].as_str().unwrap().contains("response_format"), "{body}");
    }
}
