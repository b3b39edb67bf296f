//! Flows that a real session server was captured in, lived through by Sleuth: the same events in the same order, with
//! the same fields of the same types, and the same answers to requests that fail; but for the listed differences.
//!
//! `captures/distil_sessions.py` made the facts, `captures/session_differences.json` lists in what Sleuth differs on
//! purpose. A difference that is not listed fails, and so does a listed one that is no more.

#![cfg(test)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use harness::{
    client::Frame,
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
    sessions::{Sessions, names, until},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Paths and their JSON types.
type Fields = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Facts {
    flows: BTreeMap<String, Vec<String>>,
    fields: BTreeMap<String, Fields>,
    errors: BTreeMap<String, Failing>,
}

/// A request that fails.
#[derive(Deserialize)]
struct Failing {
    method: String,
    path: String,
    content_type: Option<String>,
    body: Option<Value>,
    status: u16,
    problem: bool,
}

#[derive(Deserialize)]
struct Differences {
    /// Events whose place or number differs: they are not compared.
    order: BTreeMap<String, String>,
    /// Flows that have other events.
    moved: BTreeMap<String, Moved>,
    /// Fields that Sleuth does not send, `TYPE PATH`, and why. `*` at the end is any text.
    absent: BTreeMap<String, String>,
    /// Fields that only Sleuth sends.
    added: BTreeMap<String, String>,
    /// Requests that are answered otherwise.
    errors: BTreeMap<String, Otherwise>,
}

#[derive(Deserialize)]
struct Moved {
    sent: Vec<String>,
    #[expect(dead_code, reason = "for people")]
    reason: String,
}

#[derive(Deserialize)]
struct Otherwise {
    status: u16,
    #[expect(dead_code, reason = "for people")]
    reason: String,
}

fn fixture<T: DeserializeOwned>(name: &str) -> T {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

struct Bench {
    _sleuth: Sleuth,
    _openai: ScriptedOpenAi,
    sessions: Sessions,
    _data: TempDir,
}

impl Bench {
    async fn start() -> Self {
        let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
        let list =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
        let start = Start::serve().env("SLEUTH_DATA_DIR", data.path());
        let sleuth = start.models(&list).unwrap().start().await.unwrap();
        Self { sessions: Sessions::of(&sleuth).unwrap(), _sleuth: sleuth, _openai: openai, _data: data }
    }

    /// A turn that answers a script, with what is done while it goes on.
    async fn turn(&self, script: &Value, flow: &str) -> Vec<Frame> {
        let session = self.sessions.create(&json!({})).await.unwrap();
        let mut after = 0;
        if flow == "second" {
            self.sessions.say(&session, &said(&json!({ "answer": "first" }))).await.unwrap();
            let mut first = self.sessions.watch(&session, "after_sequence=0").await.unwrap();
            let frames = until(&mut first, "session.idled").await.unwrap();
            after = frames.last().unwrap().data["sequence"].as_u64().unwrap();
        }
        let mut stream = self.sessions.watch(&session, &format!("after_sequence={after}")).await.unwrap();
        self.sessions.say(&session, &said(script)).await.unwrap();
        let mut frames = Vec::new();
        match flow {
            "steer" => {
                frames.extend(until(&mut stream, "output.message.started").await.unwrap());
                self.sessions.say(&session, &said(&json!({ "answer": "second" }))).await.unwrap();
            }
            "cancel" => {
                frames.extend(until(&mut stream, "output.message.started").await.unwrap());
                let path = format!("/sessions/{session}/cancel");
                self.sessions.post(&path, &Value::Null).await.unwrap();
            }
            _ => {}
        }
        frames.extend(until(&mut stream, "session.idled").await.unwrap());
        frames
    }
}

fn said(script: &Value) -> String {
    format!("look FAKE_LLM{script}")
}

/// The scripts of the flows.
fn scripts() -> [(&'static str, Value); 6] {
    let call = json!({ "name": "bash", "args": { "command": "echo hi", "suggested_prefixes": ["echo"] } });
    [
        ("plain", json!({ "answer": "pong" })),
        ("tool", json!({ "steps": [[call]], "answer": "the tool said hi" })),
        ("second", json!({ "answer": "pong" })),
        ("steer", json!({ "answer": "a long answer", "latency_ms": 2000 })),
        ("cancel", json!({ "hang": true })),
        ("failing", json!({ "status": 400 })),
    ]
}

/// Paths whose content is the client's or a tool's own.
const OPAQUE: [&str; 3] = ["arguments", "request_body", "parameters"];

fn paths(value: &Value, at: &str, into: &mut Fields) {
    let kind = match value {
        Value::Null => return,
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    into.insert(at.to_owned(), kind.to_owned());
    match value {
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{at}[]"), into)),
        Value::Object(object) if !OPAQUE.iter().any(|opaque| at.ends_with(&format!(".{opaque}"))) => {
            object.iter().for_each(|(name, field)| paths(field, &format!("{at}.{name}"), into));
        }
        _ => {}
    }
}

/// What is found and not listed, or listed and not found. A listed path with `*` at its end is all that begin so.
fn unlisted<'a>(found: &'a BTreeSet<String>, listed: &'a BTreeMap<String, String>) -> Vec<&'a str> {
    let covers = |pattern: &str, path: &str| match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == pattern,
    };
    let more = found.iter().filter(|path| !listed.keys().any(|pattern| covers(pattern, path)));
    let gone = listed.keys().filter(|pattern| !found.iter().any(|path| covers(pattern, path)));
    more.chain(gone).map(String::as_str).collect()
}

#[tokio::test]
async fn captured_flows_are_the_same_but_for_the_listed_differences() {
    let facts: Facts = fixture("everruns-0.50.1/facts.json");
    let listed: Differences = fixture("session_differences.json");
    let bench = Bench::start().await;
    let mut fields: BTreeMap<String, Fields> = BTreeMap::new();
    let mut moved = BTreeMap::new();
    for (flow, script) in scripts() {
        let frames = bench.turn(&script, flow).await;
        for frame in frames.iter().filter(|frame| frame.event != "connected") {
            let known = fields.entry(frame.event.clone()).or_default();
            paths(&frame.data["data"], "data", known);
            paths(&frame.data["context"], "context", known);
        }
        let compared = |name: &&str| !listed.order.contains_key(*name);
        let sent: Vec<_> = names(&frames).into_iter().filter(compared).collect();
        let captured: Vec<_> = facts.flows[flow].iter().map(String::as_str).filter(compared).collect();
        if sent != captured {
            moved.insert(flow.to_owned(), sent.into_iter().map(str::to_owned).collect::<Vec<_>>());
        }
    }
    let listed_moved = listed.moved.into_iter().map(|(flow, moved)| (flow, moved.sent)).collect();
    assert_eq!(moved, listed_moved, "the order of the events");

    let (mut absent, mut added) = (BTreeSet::new(), BTreeSet::new());
    for (event, captured) in facts.fields.iter().filter(|(event, _)| !listed.order.contains_key(*event)) {
        let sent = &fields[event];
        for (path, kind) in captured {
            match sent.get(path) {
                Some(same) => assert_eq!(same, kind, "{event} {path}"),
                None => drop(absent.insert(format!("{event} {path}"))),
            }
        }
        added.extend(
            sent.keys().filter(|path| !captured.contains_key(*path)).map(|path| format!("{event} {path}")),
        );
    }
    assert_eq!(unlisted(&absent, &listed.absent), <[&str; 0]>::default(), "what Sleuth leaves out");
    assert_eq!(unlisted(&added, &listed.added), <[&str; 0]>::default(), "what Sleuth adds");
}

#[tokio::test]
async fn requests_that_failed_fail_alike() {
    let facts: Facts = fixture("everruns-0.50.1/facts.json");
    let listed: Differences = fixture("session_differences.json");
    let bench = Bench::start().await;
    let session = bench.sessions.create(&json!({})).await.unwrap();
    // An id of an event of another session.
    let other = bench.sessions.create(&json!({})).await.unwrap();
    bench.sessions.say(&other, "hello").await.unwrap();
    let (_, events) = bench.sessions.get(&format!("/sessions/{other}/events")).await.unwrap();
    let event = events["data"][0]["id"].as_str().unwrap();
    let http = reqwest::Client::new();
    let mut otherwise = BTreeMap::new();
    for (name, failing) in &facts.errors {
        let path = failing.path.replace("{session}", &session).replace("{event}", event);
        // The last ones leave nothing of the session.
        if failing.method == "DELETE" {
            continue;
        }
        let url = match path.strip_prefix("/v1") {
            Some(path) => bench.sessions.url(path),
            None => bench.sessions.url("").replace("/api/v1", &path),
        };
        let mut request = http.request(failing.method.parse().unwrap(), url);
        if let Some(kind) = &failing.content_type {
            request = request.header("content-type", kind);
        }
        request = match &failing.body {
            Some(Value::String(raw)) => request.body(raw.clone()),
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let is_problem = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.to_str().unwrap().starts_with("application/problem+json"));
        if status != failing.status {
            otherwise.insert(name.clone(), status);
        }
        // What had words of its own there has the protocol's here.
        assert!(is_problem || status < 400 || !failing.problem, "{name}: {status} without a problem");
    }
    let listed_otherwise =
        listed.errors.into_iter().map(|(name, otherwise)| (name, otherwise.status)).collect();
    assert_eq!(otherwise, listed_otherwise, "requests that are answered otherwise");
}
