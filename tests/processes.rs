//! The services as processes: together, apart, and when one of them dies.

#![cfg(test)]

use std::time::Duration;

use harness::{
    client::{self, Stream},
    components::has,
    models::ScriptedOpenAi,
    process::{Sleuth, Start, descendants, signal},
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(90);
const TICK: Duration = Duration::from_millis(10);

fn list(openai: &ScriptedOpenAi) -> String {
    format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url())
}

fn ask(script: &Value) -> Value {
    json!({ "ask": format!("look FAKE_LLM{script}"), "stream": true })
}

fn bash(command: &str) -> Value {
    let prefix = command.split(' ').next();
    json!({ "steps": [[{ "name": "bash", "args": { "command": command, "suggested_prefixes": [prefix] } }]] })
}

async fn until(is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(SOON, async {
        while !is_so() {
            tokio::time::sleep(TICK).await;
        }
    });
    assert!(waited.await.is_ok(), "it did not happen within {SOON:?}");
}

fn find(parent: u32, start: &str) -> Option<u32> {
    descendants(parent).into_iter().find(|(_, command)| command.contains(start)).map(|(id, _)| id)
}

/// Starts a question whose tool does not end, and waits until its command runs.
async fn stuck(sleuth: &Sleuth) -> Stream {
    let stream =
        Stream::open(&sleuth.url("/api/chat").unwrap(), &ask(&bash("tail -f /dev/null"))).await.unwrap();
    let id = sleuth.id().unwrap();
    until(|| descendants(id).iter().any(|(_, command)| command.starts_with("tail -f"))).await;
    stream
}

#[tokio::test]
async fn three_processes_do_what_one_does() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let executor = Start::new(["executor", "--listen", "127.0.0.1:0"]).start().await.unwrap();
    let executor_url = format!("http://{}", executor.address("address").unwrap());
    let agent = Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", &executor_url]);
    let agent = agent.models(&list(&openai)).unwrap().start().await.unwrap();
    let gateway = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &agent.grpc().unwrap()]);
    let gateway = gateway.start().await.unwrap();

    let ready = reqwest::get(gateway.url("/readyz").unwrap()).await.unwrap();
    assert_eq!(ready.status(), 200);
    let frames =
        client::stream(&gateway.url("/api/chat").unwrap(), &ask(&json!({ "rounds": 1 }))).await.unwrap();
    let result = frames.iter().find(|frame| frame.event == "tool_calling_result").unwrap();
    assert_eq!(result.data["result"]["data"], "echo r0t0\nr0t0");
    assert_eq!(frames.last().unwrap().event, "ai_answer_end");

    executor.kill().await.unwrap();
    let unready = async {
        loop {
            // An answer stands for a second.
            let ready = reqwest::get(gateway.url("/readyz").unwrap()).await.unwrap();
            if ready.status() == 503 {
                break ready.json::<Value>().await.unwrap();
            }
            tokio::time::sleep(TICK).await;
        }
    };
    let detail = tokio::time::timeout(SOON, unready).await.unwrap();
    assert!(detail["detail"].as_str().unwrap().contains("executor"), "{detail}");
    gateway.stop().await.unwrap();
    agent.stop().await.unwrap();
}

#[tokio::test]
async fn an_executor_that_dies_is_an_error_result_and_the_next_question_works() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = Start::serve().models(&list(&openai)).unwrap().start().await.unwrap();
    let mut stream = stuck(&sleuth).await;
    let executor = find(sleuth.id().unwrap(), " executor --listen").unwrap();
    signal(executor, "KILL").await.unwrap();
    let result = loop {
        let frame = stream.next().await.unwrap().unwrap();
        if frame.event == "tool_calling_result" {
            break frame.data;
        }
    };
    assert_eq!(result["result"]["status"], "error");
    assert!(result["result"]["error"].as_str().unwrap().contains("executor was lost"), "{result}");
    let mut last = String::new();
    while let Some(frame) = stream.next().await.unwrap() {
        last = frame.event;
    }
    assert_eq!(last, "ai_answer_end");

    let next =
        client::stream(&sleuth.url("/api/chat").unwrap(), &ask(&json!({ "rounds": 1 }))).await.unwrap();
    let result = next.iter().find(|frame| frame.event == "tool_calling_result").unwrap();
    assert_eq!(result.data["result"]["status"], "success", "{result:?}");
}

#[tokio::test]
async fn nothing_survives_a_server_that_is_killed() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = Start::serve().models(&list(&openai)).unwrap().start().await.unwrap();
    let _stream = stuck(&sleuth).await;
    let started = descendants(sleuth.id().unwrap());
    assert!(started.len() >= 2, "{started:?}");
    sleuth.kill().await.unwrap();
    until(|| started.iter().all(|(id, command)| !is_running(*id, command))).await;
}

fn is_running(id: u32, command: &str) -> bool {
    let now = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
    now.replace('\0', " ").trim() == command
}

#[tokio::test]
async fn a_server_that_is_told_to_end_lets_answers_finish() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = Start::serve().models(&list(&openai)).unwrap().start().await.unwrap();
    let slow = ask(&json!({ "latency_ms": 1500, "answer": "finished" }));
    let mut stream = Stream::open(&sleuth.url("/api/chat").unwrap(), &slow).await.unwrap();
    assert!(openai.until_in_flight(1, SOON).await);
    let (stopped, last) = tokio::join!(sleuth.stop(), async {
        let mut last = None;
        while let Some(frame) = stream.next().await.unwrap() {
            last = Some(frame);
        }
        last.unwrap()
    });
    stopped.unwrap();
    assert_eq!(last.data["analysis"], "finished");
}

#[tokio::test]
async fn a_server_beyond_loopback_wants_a_key() {
    let error =
        Start::new(["serve", "--http", "0.0.0.0:0", "--grpc", "127.0.0.1:0"]).start().await.unwrap_err();
    assert!(error.to_string().contains("set SLEUTH_API_KEY"), "{error:#}");
    let key =
        Start::new(["serve", "--http", "0.0.0.0:0", "--grpc", "127.0.0.1:0"]).env("SLEUTH_API_KEY", "k3y");
    let sleuth = key.start().await.unwrap();
    let port = sleuth.address("http").unwrap().port();
    let url = format!("http://127.0.0.1:{port}/api/model");
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 401);
    let with_key = reqwest::Client::new().get(&url).header("x-api-key", "k3y").send().await.unwrap();
    assert_eq!(with_key.status(), 200);
    let refused = Start::new(["models", "--server", &sleuth.grpc().unwrap()])
        .command()
        .unwrap()
        .output()
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("API key"), "{refused:?}");
}

#[tokio::test]
async fn ask_prints_steps_and_answer_and_leaves_nothing_running() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let question = format!("look FAKE_LLM{}", json!({ "rounds": 1, "answer": "# Fine\u{1b}[2J" }));
    let start = Start::new(["ask", &question]).models(&list(&openai)).unwrap();
    let output = start.command().unwrap().output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stdout, "# Fine\u{fffd}[2J\n");
    assert!(stderr.contains("→ echo r0t0") && stderr.contains("✓ echo r0t0"), "{stderr}");

    let json = Start::new(["ask", "--json", &question]).models(&list(&openai)).unwrap();
    let output = json.command().unwrap().output().await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["tool_calls"][0]["description"], "echo r0t0");

    let broken = format!("look FAKE_LLM{}", json!({ "status": 401 }));
    let failed = Start::new(["ask", &broken]).models(&list(&openai)).unwrap();
    let output = failed.command().unwrap().output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Incorrect API key provided"), "{output:?}");
}

#[tokio::test]
async fn a_client_in_another_language_sees_the_same_run_without_our_files() {
    let python = std::env::var("SLEUTH_TEST_PYTHON");
    if !has("grpcio", python.is_ok()) {
        return;
    }
    let python = python.unwrap();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let sleuth = Start::serve().models(&list(&openai)).unwrap().start().await.unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/chat.py");
    let question = format!("look FAKE_LLM{}", json!({ "rounds": 1, "answer": "seen" }));
    let address = sleuth.address("grpc").unwrap().to_string();
    let output =
        tokio::process::Command::new(&python).args([script, &address, &question]).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "health: SERVING", "{text}");
    assert_eq!(lines[1], "1 run_started", "{text}");
    assert!(lines.iter().any(|line| line.ends_with("tool_finished")), "{text}");
    assert_eq!(lines.last(), Some(&"answer: seen"), "{text}");
}
