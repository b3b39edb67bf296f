//! The clients that people use, unchanged, behind connections that break: each gets the whole history, nothing twice.

#![cfg(test)]

use harness::{
    browser::{self, Site},
    client::{self, Frame, Stream},
    components::has,
    link::Link,
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};

/// Bytes after which connections break: within the first events, and later, again.
const BREAKS: [u64; 2] = [1500, 6000];
/// What the streams of runs have, but for errors.
const NAMES: [&str; 4] = ["start_tool_calling", "tool_calling_result", "token_count", "ai_answer_end"];
const RUN_ENDS: &str = "ai_answer_end";
const TURN_ENDS: &str = "session.idled";

struct World {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
}

impl World {
    async fn start(origin: &str) -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let list =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
        let start = Start::serve().env("SLEUTH_CORS_ORIGINS", origin).models(&list).unwrap();
        let sleuth = start.start().await.unwrap();
        Self { openai, sleuth }
    }

    /// A way to the server that breaks.
    async fn link(&self) -> Link {
        let server = self.sleuth.address("http").unwrap();
        Link::to([server]).await.unwrap().breaking_at(BREAKS)
    }

    /// A run that goes on for a while.
    async fn run(&self) -> String {
        let stream = Stream::open(&self.url("/api/chat"), &question()).await.unwrap();
        stream.run_id().unwrap()
    }

    /// A session with a turn that goes on for a while.
    async fn session(&self) -> String {
        let (_, session) = client::post(&self.url("/api/v1/sessions"), &json!({})).await.unwrap();
        let id = session["id"].as_str().unwrap().to_owned();
        let text = json!([{ "type": "text", "text": question()["ask"] }]);
        let message = json!({ "message": { "content": text } });
        let path = format!("/api/v1/sessions/{id}/messages");
        let (status, _) = client::post(&self.url(&path), &message).await.unwrap();
        assert_eq!(status, 201);
        id
    }

    fn url(&self, path: &str) -> String {
        self.sleuth.url(path).unwrap()
    }

    /// What a reader gets whose connection holds.
    async fn undisturbed(&self, path: &str, last: &str) -> Vec<Value> {
        let mut stream = Stream::get(&self.url(path)).await.unwrap();
        let mut frames = Vec::new();
        while let Some(Frame { id, event, data }) = stream.next().await.unwrap() {
            let over = event == last;
            frames.push(json!({ "id": id, "event": event, "data": data }));
            if over {
                break;
            }
        }
        frames.retain(|frame| frame["event"] != "connected");
        frames
    }
}

fn question() -> Value {
    let command = json!({ "command": "sleep 1; echo {r}", "suggested_prefixes": ["sleep", "echo"] });
    let script = json!({ "rounds": 4, "args": command, "chunk_ms": 20, "answer": "It is a long story." });
    json!({ "ask": format!("look FAKE_LLM{script}"), "stream": true })
}

fn events(run: &str) -> String {
    format!("/api/runs/{run}/events")
}

fn sse(session: &str) -> String {
    format!("/api/v1/sessions/{session}/sse?after_sequence=0")
}

/// What a reader saw, who came back whenever the connection broke.
fn check(reader: &str, seen: &[Value], connections: &Value, link: &Link, expected: &[Value]) {
    assert_eq!(link.cuts(), BREAKS.len() as u64, "{reader}: the stream is too short");
    assert!(connections.as_u64() > Some(link.cuts()), "{reader}: {connections} connections");
    let same = |frames: &[Value]| frames.iter().cloned().map(without_request).collect::<Vec<_>>();
    assert_eq!(same(seen), same(expected), "{reader}");
}

/// A frame without the one part that is of the connection.
fn without_request(mut frame: Value) -> Value {
    if let Some(Value::Object(metadata)) = frame.pointer_mut("/data/metadata") {
        metadata.remove("request_id");
    }
    frame
}

#[tokio::test]
async fn browsers_get_the_whole_history_through_connections_that_break() {
    let Some(site) = Site::new().await.unwrap() else { return };
    let world = World::start(&site.origin().unwrap()).await;
    let links = [world.link().await, world.link().await, world.link().await];
    let [of_run, of_session, of_post] = &links;
    let (run, session) = (world.run().await, world.session().await);
    let names = wire::SESSION_EVENTS.to_vec();
    let readers = json!({
        "sources": [
            { "url": of_run.url(&events(&run)), "names": NAMES, "last": RUN_ENDS },
            { "url": of_session.url(&sse(&session)), "names": names, "last": TURN_ENDS },
        ],
        "post": { "url": of_post.url("/api/chat"), "body": question(), "last": RUN_ENDS },
    });
    let client = browser::file("resume.js").unwrap().replace("<READERS>", &readers.to_string());
    let report = site.show(browser::file("resume.html").unwrap(), client).await.unwrap();

    let posted = report[2]["run"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    let paths = [(events(&run), RUN_ENDS), (sse(&session), TURN_ENDS), (events(posted), RUN_ENDS)];
    let names = ["EventSource, a run", "EventSource, a session", "fetch-event-source"];
    for (at, (path, last)) in paths.iter().enumerate() {
        let seen = report[at]["seen"].as_array().unwrap_or_else(|| panic!("{report:#}"));
        let expected = world.undisturbed(path, last).await;
        check(names[at], seen, &report[at]["connections"], &links[at], &expected);
    }
    assert_eq!(world.openai.requests().len(), 15, "three questions of five calls, and none was asked again");
}

#[tokio::test]
async fn httpx_sse_gets_the_whole_history_through_connections_that_break() {
    let python = std::env::var("SLEUTH_TEST_PYTHON");
    if !has("httpx-sse", python.is_ok()) {
        return;
    }
    let python = python.unwrap();
    let world = World::start("http://localhost").await;
    let (run, session) = (world.run().await, world.session().await);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/resume.py");
    for (path, last) in [(events(&run), RUN_ENDS), (sse(&session), TURN_ENDS)] {
        let link = world.link().await;
        let mut reader = tokio::process::Command::new(&python);
        let output = reader.args([script, &link.url(&path), last]).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let connections = lines.pop().unwrap();
        // A new connection says so; that is no part of the history.
        lines.retain(|line| line["event"] != "connected");
        let expected = world.undisturbed(&path, last).await;
        check("httpx-sse", &lines, &connections, &link, &expected);
    }
}
