//! What is said while a turn goes on: the model hears it at its next call, once, whoever drives the run by then.

#![cfg(test)]

use std::{path::Path, time::Duration};

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
    sessions::{Sessions, find, names, until},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use wire::agent::{ChatRequest, SteerRequest, agent_client::AgentClient, event::Kind};

const SOON: Duration = Duration::from_secs(90);

async fn server(openai: &ScriptedOpenAi, data: &Path) -> Sleuth {
    let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    Start::serve().env("SLEUTH_DATA_DIR", data).models(&list).unwrap().start().await.unwrap()
}

fn script(script: &Value) -> String {
    format!("look FAKE_LLM{script}")
}

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": ["sleep"] } })
}

/// Who said what in the last conversation that the model was given.
fn last_prompt(openai: &ScriptedOpenAi) -> Vec<(String, String)> {
    let requests = openai.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let said = |message: &Value| {
        let text = message["content"].as_str().unwrap_or_default();
        let text = text.split(" FAKE_LLM").next().unwrap_or_default();
        (message["role"].as_str().unwrap().to_owned(), text.to_owned())
    };
    messages.iter().map(said).filter(|(role, _)| role == "user" || role == "assistant").collect()
}

#[tokio::test]
async fn a_message_is_heard_by_the_next_model_call_of_the_same_run() {
    let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let sleuth = server(&openai, data.path()).await;
    let sessions = Sessions::of(&sleuth).unwrap();
    let session = sessions.create(&json!({})).await.unwrap();
    let mut stream = sessions.watch(&session, "after_sequence=0").await.unwrap();

    // While a tool runs.
    let slow = json!({ "steps": [[bash("sleep 1")], [bash("sleep 2")]], "answer": "never" });
    let turn = sessions.say(&session, &script(&slow)).await.unwrap()["turn_id"].clone();
    until(&mut stream, "tool.started").await.unwrap();
    let more = format!("rather {}", script(&json!({ "answer": "rather so" })));
    assert_eq!(sessions.say(&session, &more).await.unwrap()["turn_id"], turn, "it joins the turn");
    let frames = until(&mut stream, "session.idled").await.unwrap();
    let done = find(&frames, "turn.completed").unwrap();
    assert_eq!((&done["final_answer_preview"], &done["llm_call_count"]), (&json!("rather so"), &json!(2)));
    assert_eq!(names(&frames).iter().filter(|name| **name == "tool.completed").count(), 1);

    // While the model speaks: its answer is not the last.
    let talks = json!({ "answer": "a long answer, piece by piece", "chunk_ms": 300 });
    sessions.say(&session, &script(&talks)).await.unwrap();
    until(&mut stream, "output.message.delta").await.unwrap();
    sessions.say(&session, &format!("also {}", script(&json!({ "answer": "this, too" })))).await.unwrap();
    let frames = until(&mut stream, "session.idled").await.unwrap();
    let finals: Vec<_> = frames
        .iter()
        .filter(|frame| frame.event == "output.message.completed")
        .map(|frame| frame.data["data"]["message"]["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(finals, ["a long answer, piece by piece", "this, too"]);
    assert_eq!(names(&frames).iter().filter(|name| name.starts_with("turn.")).count(), 1);
    let told = last_prompt(&openai);
    let tail: Vec<_> = told.iter().rev().take(3).map(|(_, text)| text.as_str()).collect();
    assert_eq!(tail, ["also look", "a long answer, piece by piece", "look"]);

    let runs = reqwest::get(sleuth.url("/api/runs").unwrap()).await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "a turn is one run");
}

#[tokio::test]
async fn a_message_is_heard_once_when_the_server_is_killed_before_the_model_is_asked() {
    let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let sleuth = server(&openai, data.path()).await;
    let sessions = Sessions::of(&sleuth).unwrap();
    let session = sessions.create(&json!({})).await.unwrap();
    let mut stream = sessions.watch(&session, "after_sequence=0").await.unwrap();
    let slow = json!({ "steps": [[bash("sleep 2")]], "answer": "never" });
    sessions.say(&session, &script(&slow)).await.unwrap();
    until(&mut stream, "tool.started").await.unwrap();
    sessions.say(&session, &format!("rather {}", script(&json!({ "answer": "rather so" })))).await.unwrap();
    let seen = until(&mut stream, "input.message").await.unwrap();
    sleuth.kill().await.unwrap();
    drop(stream);

    let back = server(&openai, data.path()).await;
    let sessions = Sessions::of(&back).unwrap();
    let last = &seen.last().unwrap().id;
    let mut stream = sessions.watch(&session, &format!("since_id={last}")).await.unwrap();
    let frames = until(&mut stream, "session.idled").await.unwrap();
    assert_eq!(find(&frames, "turn.completed").unwrap()["final_answer_preview"], "rather so");
    let heard = last_prompt(&openai).iter().filter(|(_, text)| text == "rather look").count();
    assert_eq!(heard, 1);
}

#[tokio::test]
async fn a_run_is_told_something_over_grpc() {
    let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let sleuth = server(&openai, data.path()).await;
    let mut client = AgentClient::connect(sleuth.grpc().unwrap()).await.unwrap();
    let slow = json!({ "steps": [[bash("sleep 1")]], "answer": "never" });
    let asked = ChatRequest { question: script(&slow), ..ChatRequest::default() };
    let mut events = client.chat(asked).await.unwrap().into_inner();
    let run_id = loop {
        let event = events.message().await.unwrap().unwrap();
        if matches!(event.kind, Some(Kind::ToolStarted(_))) {
            break event.run_id;
        }
    };
    let word = |text: &str| SteerRequest {
        run_id: run_id.clone(),
        text: text.to_owned(),
        client_message_id: "one".to_owned(),
        ..SteerRequest::default()
    };
    let text = script(&json!({ "answer": "rather so" }));
    client.steer(word(&text)).await.unwrap();
    client.steer(word(&text)).await.unwrap();
    let other = client.steer(word("other")).await.unwrap_err();
    assert_eq!(other.code(), tonic::Code::AlreadyExists);
    assert_eq!(client.steer(word("")).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    let rest = tokio::time::timeout(SOON, async {
        let mut kinds = Vec::new();
        while let Some(event) = events.message().await.unwrap() {
            kinds.extend(event.kind);
        }
        kinds
    });
    let rest = rest.await.unwrap();
    assert_eq!(rest.iter().filter(|kind| matches!(kind, Kind::Steered(_))).count(), 1);
    assert!(matches!(rest.last(), Some(Kind::RunFinished(end)) if end.answer == "rather so"), "{rest:?}");
    assert_eq!(client.steer(word(&text)).await.unwrap_err().code(), tonic::Code::FailedPrecondition);
    let unknown = SteerRequest { run_id: "run_0".to_owned(), ..word(&text) };
    assert_eq!(client.steer(unknown).await.unwrap_err().code(), tonic::Code::NotFound);
}
