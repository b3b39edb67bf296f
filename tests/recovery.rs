//! A server, an agent or an executor that is killed at any moment: the run goes on where it was, and its readers see
//! every event once.

#![cfg(test)]

use std::{collections::HashSet, path::Path, time::Duration};

use harness::{
    client::{Frame, Stream},
    models::ScriptedOpenAi,
    postgres::Postgres,
    process::{Sleuth, Start, descendants},
};
use serde_json::{Value, json};
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(90);
const TICK: Duration = Duration::from_millis(20);
/// Moments at which a server is killed, in milliseconds after it was asked.
const SEEDS: [u64; 6] = [0, 60, 150, 320, 700, 1100];

fn list(openai: &ScriptedOpenAi) -> String {
    format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url())
}

fn ask(script: &Value) -> Value {
    json!({ "ask": format!("look FAKE_LLM{script}"), "stream": true })
}

async fn server(openai: &ScriptedOpenAi, data: &Path) -> Sleuth {
    Start::serve().env("SLEUTH_DATA_DIR", data).models(&list(openai)).unwrap().start().await.unwrap()
}

/// Reads on after the last frame, until the stream ends or breaks.
async fn read(stream: &mut Stream, frames: &mut Vec<Frame>) {
    while let Ok(Some(frame)) = stream.next().await {
        frames.push(frame);
    }
}

/// Reads a run to its end, however often that takes.
async fn rest(url: &str, run: &str, frames: &mut Vec<Frame>) {
    let ended = |frames: &[Frame]| frames.last().is_some_and(|frame| frame.event == "ai_answer_end");
    let reading = async {
        while !ended(frames) {
            let after = frames.last().map_or("0", |frame| frame.id.rsplit_once(':').unwrap().1);
            let events = format!("{url}/api/runs/{run}/events?after={after}");
            if let Ok(mut stream) = Stream::get(&events).await {
                read(&mut stream, frames).await;
            }
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(SOON, reading).await.expect("the run ends");
}

fn check(frames: &[Frame], answer: &str) {
    let ids: HashSet<_> = frames.iter().map(|frame| &frame.id).collect();
    assert_eq!(ids.len(), frames.len(), "nothing twice");
    let ends = frames.iter().filter(|frame| frame.event == "ai_answer_end").count();
    assert_eq!(ends, 1);
    assert_eq!(frames.last().unwrap().data["analysis"], answer);
    let of = |name: &str, key: &str| -> Vec<String> {
        let named = frames.iter().filter(|frame| frame.event == name);
        named.map(|frame| frame.data[key].as_str().unwrap().to_owned()).collect()
    };
    let (mut begun, mut ended) = (of("start_tool_calling", "id"), of("tool_calling_result", "tool_call_id"));
    begun.sort();
    ended.sort();
    assert_eq!(begun, ended, "each call begins once and ends once");
}

#[tokio::test]
async fn a_server_that_is_killed_at_any_moment_ends_its_runs_when_it_is_back() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let command = json!({ "command": "sleep 0.3; echo r{r}", "suggested_prefixes": ["sleep", "echo"] });
    let question = ask(&json!({ "rounds": 2, "args": command, "latency_ms": 150, "answer": "found" }));
    for seed in SEEDS {
        let data = TempDir::new().unwrap();
        let sleuth = server(&openai, data.path()).await;
        let url = sleuth.url("/api/chat").unwrap();
        let mut stream = Stream::open(&url, &question).await.unwrap();
        let run = stream.run_id().unwrap();
        let mut frames = Vec::new();
        // What arrived before counts; what was under way may be lost with the connection.
        let _ = tokio::time::timeout(Duration::from_millis(seed), read(&mut stream, &mut frames)).await;
        sleuth.kill().await.unwrap();
        let sleuth = server(&openai, data.path()).await;
        rest(&sleuth.url("").unwrap(), &run, &mut frames).await;
        check(&frames, "found");
    }
}

#[tokio::test]
async fn another_agent_takes_over_and_the_command_in_flight_runs_once() {
    let Some(postgres) = Postgres::start().await.unwrap() else { return };
    let store = postgres.database("recovery").await.unwrap();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let executor = Start::new(["executor", "--listen", "127.0.0.1:0"]).start().await.unwrap();
    let executor_url = format!("http://{}", executor.address("address").unwrap());
    let agent = |grpc: String| {
        let start = Start::new(["agent", "--grpc", &grpc, "--executor", &executor_url]);
        start.env("SLEUTH_STORE", &store).models(&list(&openai)).unwrap().start()
    };
    let first = agent("127.0.0.1:0".to_owned()).await.unwrap();
    let _second = agent("127.0.0.1:0".to_owned()).await.unwrap();
    let address = first.address("grpc").unwrap().to_string();
    let gateway = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &first.grpc().unwrap()]);
    let gateway = gateway.start().await.unwrap();

    let command = json!({ "command": "sleep 3.25; echo slept", "suggested_prefixes": ["sleep", "echo"] });
    let question = ask(&json!({ "rounds": 1, "args": command, "answer": "found" }));
    let mut stream = Stream::open(&gateway.url("/api/chat").unwrap(), &question).await.unwrap();
    let running = || {
        let processes = descendants(executor.id().unwrap());
        processes.into_iter().find(|(_, command)| command == "sleep 3.25").map(|(id, _)| id)
    };
    let began = tokio::time::timeout(SOON, async {
        loop {
            match running() {
                Some(id) => break id,
                None => tokio::time::sleep(TICK).await,
            }
        }
    });
    let began = began.await.expect("the command runs");
    first.kill().await.unwrap();
    // Whoever listens where the lost agent did serves its readers; who drives the run does not matter.
    let _third = agent(address).await.unwrap();
    let mut frames = Vec::new();
    read(&mut stream, &mut frames).await;
    check(&frames, "found");
    let result = frames.iter().find(|frame| frame.event == "tool_calling_result").unwrap();
    assert_eq!(result.data["result"]["status"], "success", "{result:?}");
    assert_ne!(running(), Some(began));
    let starts = executor.log().iter().filter(|line| line.contains("sleep 3.25")).count();
    assert!(starts <= 1, "it was run once");
}

#[tokio::test]
async fn a_repeated_request_joins_the_run_of_the_first_one() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let data = TempDir::new().unwrap();
    let sleuth = server(&openai, data.path()).await;
    let url = sleuth.url("/api/chat").unwrap();
    let question = ask(&json!({ "rounds": 1, "answer": "found" }));
    let send =
        |body: Value| reqwest::Client::new().post(&url).header("Idempotency-Key", "k1").json(&body).send();
    let first = send(question.clone()).await.unwrap().text().await.unwrap();
    let again = send(question).await.unwrap().text().await.unwrap();
    let ids = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
    };
    assert_eq!(ids(&first), ids(&again));
    assert!(ids(&first).len() > 4, "{first}");
    assert_eq!(send(ask(&json!({}))).await.unwrap().status(), 409);
}
