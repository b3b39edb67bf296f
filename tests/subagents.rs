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
    let none = all(&sleuth, ask(question, 0, 0)).await;
    assert_eq!(answers(&none).len(), 1);
}

#[tokio::test]
async fn questions_of_other_dialects_are_shared_out_too_as_far_as_the_operator_lets_them() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let below = agent(&json!({ "answer": "below" }));
    let parts = [
        agent(&json!({ "steps": [[bash("echo first")]], "answer": "one" })),
        agent(&json!({ "steps": [[below]], "answer": "two" })),
        agent(&json!({ "answer": "three" })),
    ];
    let ask = script(&json!({ "steps": [parts], "answer": "all" }));
    for (flags, refused) in [(&[][..], 0), (&["--subagents", "2"], 1), (&["--subagents", "0"], 3)] {
        let start = flags.iter().fold(start(&openai), Start::arg);
        let sleuth = start.start().await.unwrap();
        let url = sleuth.url("/api/chat").unwrap();
        let (status, answer) = client::post(&url, &json!({ "ask": ask })).await.unwrap();
        assert_eq!((status.as_u16(), &answer["analysis"]), (200, &json!("all")), "{answer}");
        let calls = answer["tool_calls"].as_array().unwrap();
        let failed = calls.iter().filter(|call| call["result"]["status"] == "error").count();
        assert_eq!((calls.len(), failed), (3, refused), "{flags:?}: {answer}");
    }
}

#[tokio::test]
async fn an_agent_that_fails_is_a_failure_of_the_call_that_started_it() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = server(&openai).await;
    let parts = [agent(&json!({ "status": 400 })), agent(&json!({ "answer": "well" }))];
    let events = all(&sleuth, ask(script(&json!({ "steps": [parts], "answer": "all" })), 1, 2)).await;
    assert_eq!(answers(&events)["main"], "all");
    let results = events.iter().filter_map(|event| match &event.kind {
        Some(Kind::ToolFinished(finished)) if event.agent_id == "main" => finished.result.clone(),
        _ => None,
    });
    let (failed, well): (Vec<_>, Vec<_>) = results.partition(|result| !result.error.is_empty());
    assert!(failed[0].error.starts_with("The agent failed: "), "{failed:?}");
    assert_eq!((failed.len(), well.len(), well[0].data.as_str()), (1, 1, "well"));
}

#[tokio::test]
async fn what_an_agent_may_not_run_its_parent_asks_a_person_about() {
    let (openai, folder) = (ScriptedOpenAi::start().await.unwrap(), tempfile::tempdir().unwrap());
    let sleuth = start(&openai).env("SLEUTH_DATA_DIR", folder.path().join("data")).start().await.unwrap();
    let mark = folder.path().join("mark");
    let write = bash(&format!("echo once >> {}", mark.display()));
    let part = agent(&json!({ "steps": [[write]], "answer": "It needs that command." }));
    let ask = script(&json!({ "steps": [[part], [write]], "answer": "done" }));
    let url = sleuth.url("/api/chat").unwrap();
    let (_, held) = client::post(&url, &json!({ "ask": ask, "enable_tool_approval": true })).await.unwrap();
    let [pending] = &held["pending_approvals"].as_array().unwrap()[..] else { panic!("{held}") };
    assert!(!mark.exists() && pending["params"]["command"] == write["args"]["command"], "{held}");
    let below = openai.requests()[2].body["messages"].to_string();
    assert!(below.contains("needs the approval of a person, and you cannot ask one"), "{below}");
    let decision = json!({ "tool_call_id": pending["tool_call_id"], "approved": true });
    let body = json!({
        "ask": "", "enable_tool_approval": true, "conversation_history": held["conversation_history"],
        "tool_decisions": [decision],
    });
    let (_, answer) = client::post(&url, &body).await.unwrap();
    assert_eq!(answer["analysis"], "done", "{answer}");
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "once\n");
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
