//! The harness dialect through the whole path: decisions about calls while the stream stays open.

#![cfg(test)]

use std::time::Duration;

use harness::{
    client::{self, Frame, Stream},
    components::has_program,
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

/// Long enough for a loaded machine; never waited for in a passing test.
const SOON: Duration = Duration::from_secs(40);

struct Bench {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
    _folder: TempDir,
}

impl Bench {
    async fn start() -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let folder = TempDir::new().unwrap();
        let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk\n  base_url: {}\n", openai.url());
        let start = Start::serve().env("SLEUTH_DATA_DIR", folder.path().join("data"));
        let sleuth = start.models(&list).unwrap().start().await.unwrap();
        Self { openai, sleuth, _folder: folder }
    }

    async fn open(&self, script: &Value, permissions: Option<Value>) -> Chat {
        let content = format!("look FAKE_LLM{script}");
        let mut body = json!({"messages": [{"role": "user", "content": content}]});
        if let Some(permissions) = permissions {
            body["permissions"] = permissions;
        }
        let stream = Stream::open(&self.sleuth.url("/chat").unwrap(), &body).await.unwrap();
        Chat { stream, seen: Vec::new() }
    }

    async fn answer(&self, session: &str, relay: &str, response: Value) -> (u16, Value) {
        let url = self.sleuth.url(&format!("/chat/relay/{relay}")).unwrap();
        let body = json!({"sessionId": session, "response": response});
        let (status, answer) = client::post(&url, &body).await.unwrap();
        (status.as_u16(), answer)
    }
}

/// An open stream and what came of it.
struct Chat {
    stream: Stream,
    seen: Vec<Frame>,
}

impl Chat {
    /// Reads on until an event of this name, or to the end.
    async fn until(&mut self, name: &str) -> Option<Value> {
        loop {
            let next = timeout(SOON, self.stream.next()).await.expect("an event").unwrap()?;
            self.seen.push(next.clone());
            if next.event == name {
                return Some(next.data);
            }
        }
    }

    async fn end(&mut self) {
        assert_eq!(self.until("no such event").await, None);
    }

    fn session(&self) -> &str {
        self.seen[0].data["sessionId"].as_str().unwrap()
    }

    fn names(&self) -> Vec<&str> {
        let names = self.seen.iter().map(|frame| frame.event.as_str());
        names.filter(|name| !matches!(*name, "text" | "tool_progress")).collect()
    }

    fn outputs(&self) -> Vec<&Value> {
        let results = self.seen.iter().filter(|frame| frame.event == "tool_result");
        results.map(|frame| &frame.data["output"]).collect()
    }
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "args": {"command": command}})
}

fn steps(calls: &[&str]) -> Value {
    json!({"steps": calls.iter().map(|call| vec![bash(call)]).collect::<Vec<_>>(), "answer": "done"})
}

#[tokio::test]
async fn a_change_waits_for_a_person_and_runs_once_it_is_allowed() {
    let bench = Bench::start().await;
    let mut chat = bench.open(&steps(&["mkdir one"]), None).await;
    let relay = chat.until("relay").await.unwrap();
    assert_eq!((&relay["tool"], &relay["params"]), (&json!("bash"), &json!({"command": "mkdir one"})));
    let (session, id) = (chat.session().to_owned(), relay["id"].as_str().unwrap());
    let yes = json!({"approved": true});
    assert_eq!(bench.answer(&session, id, yes.clone()).await, (200, json!({"success": true})));
    let (status, again) = bench.answer(&session, id, yes.clone()).await;
    assert_eq!((status, again), (404, json!({"error": "Relay not found"})));
    chat.end().await;
    let expected =
        ["connected", "harness_start", "usage", "relay", "tool_call", "tool_result", "usage", "harness_end"];
    assert_eq!(chat.names(), expected);
    assert_eq!(chat.outputs()[0]["result"], json!({"exitCode": 0, "stdout": "", "stderr": ""}));
    assert_eq!(chat.seen.last().unwrap().data["reason"], "final");
    assert_eq!(bench.answer(&session, id, yes).await, (404, json!({"error": "Session not found"})));
}

#[tokio::test]
async fn a_denial_reaches_the_model_which_goes_on() {
    let bench = Bench::start().await;
    let mut chat = bench.open(&steps(&["mkdir one"]), None).await;
    let relay = chat.until("relay").await.unwrap();
    let no = json!({"approved": false, "reason": "use /data"});
    let session = chat.session().to_owned();
    assert_eq!(bench.answer(&session, relay["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    assert_eq!(chat.outputs(), [&json!({"status": "denied", "reason": "use /data"})]);
    assert!(!chat.names().contains(&"tool_call"));
    assert_eq!(chat.seen.last().unwrap().event, "harness_end");
}

#[tokio::test]
async fn always_lets_calls_like_it_run_unasked_from_then_on() {
    let bench = Bench::start().await;
    let mut chat = bench.open(&steps(&["mkdir one", "mkdir two", "touch three"]), Some(json!({}))).await;
    let first = chat.until("relay").await.unwrap();
    let session = chat.session().to_owned();
    let always = json!({"approved": true, "always": true});
    assert_eq!(bench.answer(&session, first["id"].as_str().unwrap(), always).await.0, 200);
    let second = chat.until("relay").await.unwrap();
    assert_eq!(second["params"]["command"], "touch three", "`mkdir two` was not asked about");
    let no = json!({"approved": false});
    assert_eq!(bench.answer(&session, second["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    assert_eq!(chat.outputs().len(), 3);
}

#[tokio::test]
async fn rules_of_the_client_allow_ask_and_forbid_and_lift_no_refusal() {
    let bench = Bench::start().await;
    let rule = |command: &str| json!({"tool": "bash", "params": {"command": command}});
    let permissions = json!({
        "allowlist": [rule("mkdir *"), rule("echo *"), rule("sudo *")],
        "allowOnce": [rule("touch a")],
        "deny": [{"tool": "bash", "params": {"command": "echo secret*"}, "reason": "not that"}],
    });
    let commands = ["mkdir one", "echo secret", "sudo id", "touch a", "touch a"];
    let mut chat = bench.open(&steps(&commands), Some(permissions)).await;
    let relay = chat.until("relay").await.unwrap();
    assert_eq!(relay["params"]["command"], "touch a", "its rule was for one call");
    let session = chat.session().to_owned();
    let no = json!({"approved": false, "reason": "once"});
    assert_eq!(bench.answer(&session, relay["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    let outputs = chat.outputs();
    assert_eq!(outputs[0]["result"]["exitCode"], 0);
    assert_eq!(*outputs[1], json!({"status": "denied", "reason": "not that"}));
    assert!(outputs[2]["error"].as_str().is_some_and(|why| why.contains("sudo")), "{}", outputs[2]);
    assert_eq!(outputs[3]["result"]["exitCode"], 0);
    assert_eq!(*outputs[4], json!({"status": "denied", "reason": "once"}));
}

#[tokio::test]
async fn an_agent_that_waits_does_not_hold_up_the_others() {
    let bench = Bench::start().await;
    let part = |script: Value| json!({"name": "agent", "args": {"task": format!("look FAKE_LLM{script}")}});
    let parts = [part(steps(&["mkdir one"])), part(steps(&["echo hi"])), part(steps(&["mkdir two"]))];
    let mut chat = bench.open(&json!({"steps": [parts], "answer": "all"}), None).await;
    let relays = [chat.until("relay").await.unwrap(), chat.until("relay").await.unwrap()];
    assert_ne!(relays[0]["agentId"], relays[1]["agentId"]);
    let ended = |chat: &Chat| chat.names().contains(&"harness_end");
    while !ended(&chat) {
        chat.until("harness_end").await.expect("the agent that asks nobody ends");
    }
    let session = chat.session().to_owned();
    for (relay, approved) in relays.iter().zip([true, false]) {
        let response = json!({"approved": approved});
        assert_eq!(bench.answer(&session, relay["id"].as_str().unwrap(), response).await.0, 200);
    }
    chat.end().await;
    assert_eq!(chat.names().iter().filter(|name| **name == "harness_end").count(), 4);
    let denied = chat.outputs().into_iter().filter(|output| output["status"] == "denied").count();
    assert_eq!((denied, chat.outputs().len()), (1, 6));
    let starts: Vec<_> = chat.seen.iter().filter(|frame| frame.event == "harness_start").collect();
    let calls: Vec<_> = chat.seen.iter().filter(|frame| frame.event == "tool_call").collect();
    for start in &starts[1..] {
        assert!(calls.iter().any(|call| call.data["id"] == start.data["parentId"]), "{start:?}");
    }
}

/// The client that was written from the API's document alone, in Node.
#[tokio::test]
async fn a_client_by_the_document_works_in_node() {
    if !has_program("node") {
        return;
    }
    let bench = Bench::start().await;
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/harness/client.mjs");
    let question = format!(
        "look FAKE_LLM{}",
        json!({"say": "I make it.", "steps": [[bash("mkdir one")]], "answer": "Made."})
    );
    let run = Command::new("node").args([client, &bench.sleuth.url("").unwrap(), &question]).output();
    let output = timeout(SOON, run).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["text"], "I make it.Made.", "{seen:#}");
    assert_eq!(seen["relays"], json!([{"tool": "bash", "params": {"command": "mkdir one"}}]));
    assert_eq!(seen["results"][0]["exitCode"], 0);
    assert_eq!((&seen["reason"], &seen["models"][0]), (&json!("final"), &json!("gpt")));
    assert_eq!(bench.openai.requests().len(), 2);
}
