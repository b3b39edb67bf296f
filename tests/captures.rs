//! Requests that a real HolmesGPT server answered, answered by Sleuth: equal in every fact but the listed ones.
//!
//! `captures/distil.py` made the fixtures, `captures/DIFFERENCES.md` explains, and `captures/differences.json`
//! lists, in what Sleuth differs on purpose. A difference that is not listed fails, and so does a listed one that
//! is no more.

#![cfg(test)]

#[path = "captures/facts.rs"]
mod facts;

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use facts::Difference;
use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The captured servers: of the current API, and of the older one.
const SERVERS: [&str; 2] = ["holmes-0.45.0", "holmes-0.16.2-alpha2"];
const KEY: &str = "secret-key";
const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Capture {
    /// The server that gave the answer.
    #[serde(skip)]
    server: &'static str,
    /// Whether the server asked for a key.
    keyed: bool,
    request: Request,
    answer: Value,
}

#[derive(Debug, Deserialize)]
struct Request {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    raw_body: Option<String>,
}

/// A difference that is intended.
#[derive(Debug, Deserialize)]
struct Intended {
    /// Name of the captured servers, `*` for any text.
    server: String,
    /// Name of the captures, `*` for any text.
    capture: String,
    /// Where, `*` for any text.
    path: String,
    /// What Sleuth sends.
    sent: Value,
    #[expect(dead_code, reason = "for people")]
    reason: String,
}

impl Intended {
    fn covers(&self, server: &str, name: &str, difference: &Difference) -> bool {
        globbed(&self.server, server)
            && globbed(&self.capture, name)
            && globbed(&self.path, &difference.path)
            && facts::allows(&self.sent, &difference.sent)
    }
}

/// Whether a text is what a pattern with at most one `*` allows.
fn globbed(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => text.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
        None => pattern == text,
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

/// The captures by name, of one server after the other.
fn captures() -> impl Iterator<Item = (String, Capture)> {
    SERVERS.into_iter().flat_map(|server| {
        let entries = fs::read_dir(folder().join(server)).unwrap();
        entries.map(move |entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let capture: Result<Capture, _> = serde_json::from_str(&fs::read_to_string(&path).unwrap());
            let capture = capture.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (name, Capture { server, ..capture })
        })
    })
}

/// A server in front of the scripted model, under the names of the captured server's models.
async fn serve(model: &ScriptedOpenAi, key: Option<&str>) -> Sleuth {
    let models = tempfile::NamedTempFile::new().unwrap();
    let entry = json!({"model": "openai/scripted", "api_base": model.url(), "api_key": "none"});
    let mut small = entry.clone();
    // The sizes that the captured answers name.
    small["custom_args"] = json!({"max_context_size": 50_000});
    small["max_tokens"] = json!(32_768);
    let list = json!({"fake": entry, "fake-second": entry, "fake-small": small});
    fs::write(models.path(), list.to_string()).unwrap();
    // The original does not wait for a rate limit to pass.
    let start = Start::serve().env("LLM_RATE_LIMIT_MAX_WAIT_SECONDS", "0");
    // A cluster's configuration is never read by commands, and two of the captured ones read /dev/null.
    let start = start.env("KUBECONFIG", "/nonexistent").arg("--model-list").arg(models.path());
    let start = key.into_iter().fold(start, |start, key| start.env("SLEUTH_API_KEY", key));
    start.start().await.unwrap()
}

/// The capture whose answer the ones of decisions go on from.
const ASKS_A_PERSON: &str = "approval_1_request";
/// In a request, stands for the signature of a call that the server has wait.
const SIGNATURE: &str = "$approval_token";

/// A request, with what the server itself gave for the one before it.
async fn continued(server: &Sleuth, request: Request, before: &Request) -> Request {
    let text = request.body.as_ref().map(Value::to_string).filter(|text| text.contains(SIGNATURE));
    let Some(text) = text else { return request };
    let asked = replay(server, before).await;
    let history = asked["events"].as_array().unwrap().last().unwrap()["data"]["conversation_history"].clone();
    let pending = &history.as_array().unwrap().last().unwrap()["tool_calls"][0];
    let text = text.replace(SIGNATURE, pending["approval_token"].as_str().unwrap());
    Request { body: Some(serde_json::from_str(&text).unwrap()), ..request }
}

/// The answer in the form of the fixtures.
async fn replay(server: &Sleuth, request: &Request) -> Value {
    let client = reqwest::Client::builder().timeout(DEADLINE).build().unwrap();
    let url = server.url(&request.path).unwrap();
    let mut sent = client.request(request.method.parse().unwrap(), url);
    for (name, value) in &request.headers {
        sent = sent.header(name, value);
    }
    if let Some(body) = request.raw_body.clone().or_else(|| request.body.as_ref().map(Value::to_string)) {
        sent = sent.body(body);
    }
    let response = sent.send().await.unwrap_or_else(|error| panic!("{request:?}: {error}"));
    let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let mut answer = json!({"status": response.status().as_u16(), "content_type": header("content-type")});
    if let Some(allow) = header("allow") {
        answer["allow"] = allow.into();
    }
    let text = response.text().await.unwrap();
    if answer["content_type"].as_str().is_some_and(|media| media.starts_with("text/event-stream")) {
        answer["events"] = text.split_terminator("\n\n").filter_map(event).collect();
    } else {
        answer["body"] = serde_json::from_str(&text).unwrap();
    }
    answer
}

/// A frame of a stream; `None` for a comment.
fn event(frame: &str) -> Option<Value> {
    let field = |name| frame.lines().find_map(|line| line.strip_prefix(name));
    let data = field("data: ")?;
    Some(json!({"event": field("event: ").unwrap(), "data": serde_json::from_str::<Value>(data).unwrap()}))
}

#[tokio::test]
async fn captured_requests_are_answered_as_the_original_did() {
    let intended: Vec<Intended> =
        serde_json::from_str(&fs::read_to_string(folder().join("differences.json")).unwrap()).unwrap();
    let mut met = vec![false; intended.len()];
    let mut unintended = Vec::new();

    let model = ScriptedOpenAi::start().await.unwrap();
    let (open, keyed) = tokio::join!(serve(&model, None), serve(&model, Some(KEY)));
    let asks_a_person = captures().find(|(name, _)| name == ASKS_A_PERSON).unwrap().1.request;
    for (name, capture) in captures() {
        let server = if capture.keyed { &keyed } else { &open };
        let request = continued(server, capture.request, &asks_a_person).await;
        let answer = replay(server, &request).await;
        for difference in facts::differences(&capture.answer, &answer) {
            let mut covered = false;
            for (intended, met) in intended.iter().zip(&mut met) {
                let covers = intended.covers(capture.server, &name, &difference);
                *met |= covers;
                covered |= covers;
            }
            if !covered {
                unintended
                    .push(format!("{} {name}: {} is {}", capture.server, difference.path, difference.sent));
            }
        }
    }
    let gone: Vec<_> =
        intended.iter().zip(met).filter(|(_, met)| !met).map(|(intended, _)| intended).collect();
    assert!(unintended.is_empty(), "not listed in differences.json:\n{}", unintended.join("\n"));
    assert!(gone.is_empty(), "listed in differences.json, but no more: {gone:#?}");
}
