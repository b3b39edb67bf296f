//! Agents that give parts of their work to others: in one log, within their parents, and gone when these are.

#![cfg(test)]

use std::{collections::HashMap, time::Duration};

use harness::{
    client,
    models::ScriptedOpenAi,
    process::{Sleuth, Start, descendants},
};
use serde_json::{Value, json};
use wire::agent::{CancelRunRequest, ChatRequest, Event, Subagents, agent_client::AgentClient, event::Kind};

const SOON: Duration = Duration::from_secs(90);

async fn server(openai: &ScriptedOpenAi) -> Sleuth {
    start(openai).start().await.unwrap()
}

fn start(openai: &ScriptedOpenAi) -> Start {
    let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk\n  base_url: {}\n", openai.url());
    Start::serve().models(&list).unwrap()
}

fn script(script: &Value) -> String {
    format!("look FAKE_LLM{script}")
}

/// A call that gives this script to an agent.
fn agent(task: &Value) -> Value {
    json!({ "name": "agent", "args": { "task": script(task) } })
}

fn bash(command: &str) -> Value {
    let prefix = command.split(' ').next();
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": [prefix] } })
}

fn ask(question: String, depth: u32, number: u32) -> ChatRequest {
    ChatRequest { question, subagents: Some(Subagents { depth, number }), ..ChatRequest::default() }
}

async fn all(sleuth: &Sleuth, request: ChatRequest) -> Vec<Event> {
    let mut client = AgentClient::connect(sleuth.grpc().unwrap()).await.unwrap();
    let mut events = client.chat(request).await.unwrap().into_inner();
    let reading = tokio::time::timeout(SOON, async {
        let mut all = Vec::new();
        while let Some(event) = events.message().await.unwrap() {
            all.push(event);
        }
        all
    });
    reading.await.expect("the run ends")
}

/// What each agent ended with.
fn answers(events: &[Event]) -> HashMap<String, String> {
    let ends = events.iter().filter_map(|event| match &event.kind {
        Some(Kind::RunFinished(end)) => Some((event.agent_id.clone(), end.answer.clone())),
        _ => None,
    });
    ends.collect()
}

#[tokio::test]
async fn agents_work_at_the_same_time_each_in_its_own_context() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = server(&openai).await;
    let grandchild = agent(&json!({ "answer": "three" }));
    let parts = [
        agent(&json!({ "steps": [[bash("echo first")]], "answer": "one" })),
        agent(&json!({ "steps": [[grandchild]], "answer": "two" })),
    ];
    let events = all(&sleuth, ask(script(&json!({ "steps": [parts], "answer": "all" })), 2, 8)).await;
    let said = answers(&events);
    let mut words: Vec<_> = said.values().map(String::as_str).collect();
    words.sort_unstable();
    assert_eq!(words, ["all", "one", "three", "two"], "{said:?}");
    assert_eq!(said["main"], "all");
    let parents: HashMap<_, _> = events
        .iter()
        .filter(|event| matches!(event.kind, Some(Kind::RunStarted(_))))
        .map(|event| (event.agent_id.as_str(), event.parent_agent_id.as_str()))
        .collect();
    let of_main = parents.values().filter(|parent| **parent == "main").count();
    assert_eq!((parents.len(), of_main), (4, 2), "{parents:?}");
    assert!(matches!(events.last().unwrap().kind, Some(Kind::RunFinished(_))));
    assert_eq!(events.last().unwrap().agent_id, "main");
}

#[tokio::test]
async fn depth_and_number_are_bounded() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = server(&openai).await;
    let part = || agent(&json!({ "answer": "part" }));
    let question = script(&json!({ "steps": [[part(), part(), part()]], "answer": "all" }));
    let events = all(&sleuth, ask(question.clone(), 1, 2)).await;
    assert_eq!(answers(&events).values().filter(|answer| *answer == "part").count(), 2);
    let none = all(&sleuth, ChatRequest { question, ..ChatRequest::default() }).await;
    assert_eq!(answers(&none).len(), 1);
}

#[tokio::test]
async fn where_the_operator_says_so_questions_of_other_dialects_are_shared_out_too() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = start(&openai).arg("--subagents").arg("2").start().await.unwrap();
    let below = agent(&json!({ "answer": "below" }));
    let parts = [
        agent(&json!({ "steps": [[bash("echo first")]], "answer": "one" })),
        agent(&json!({ "steps": [[below]], "answer": "two" })),
        agent(&json!({ "answer": "three" })),
    ];
    let ask = script(&json!({ "steps": [parts], "answer": "all" }));
    let url = sleuth.url("/api/chat").unwrap();
    let (status, answer) = client::post(&url, &json!({ "ask": ask })).await.unwrap();
    assert_eq!((status.as_u16(), &answer["analysis"]), (200, &json!("all")), "{answer}");
    let calls = answer["tool_calls"].as_array().unwrap();
    let refused = calls.iter().filter(|call| call["result"]["status"] == "error").count();
    assert_eq!((calls.len(), refused), (3, 1), "two are all that there may be: {answer}");
}

#[tokio::test]
async fn a_run_that_is_cancelled_takes_its_agents_with_it() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = server(&openai).await;
    let stuck = agent(&json!({ "steps": [[bash("tail -f /dev/null")]] }));
    let deep = agent(&json!({ "steps": [[stuck.clone()]] }));
    let mut client = AgentClient::connect(sleuth.grpc().unwrap()).await.unwrap();
    let question = script(&json!({ "steps": [[stuck, deep]] }));
    let mut events = client.chat(ask(question, 3, 8)).await.unwrap().into_inner();
    let id = sleuth.id().unwrap();
    let tails = || descendants(id).iter().filter(|(_, command)| command.starts_with("tail -f")).count();
    let both = tokio::time::timeout(SOON, async {
        while tails() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    both.await.expect("both commands run");
    let run_id = events.message().await.unwrap().unwrap().run_id;
    client.cancel_run(CancelRunRequest { run_id, ..CancelRunRequest::default() }).await.unwrap();
    let mut last = None;
    while let Some(event) = events.message().await.unwrap() {
        last = Some(event);
    }
    let last = last.unwrap();
    assert_eq!(last.agent_id, "main");
    assert!(matches!(last.kind, Some(Kind::RunCancelled(_))), "{last:?}");
    let gone = tokio::time::timeout(SOON, async {
        while tails() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    gone.await.expect("nothing is left running");
}
