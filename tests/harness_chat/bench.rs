//! A server with a scripted model, and chats with it.

use std::time::Duration;

use harness::{
    client::{self, Frame, Stream},
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

/// Long enough for a loaded machine; never waited for in a passing test.
pub(crate) const SOON: Duration = Duration::from_secs(180);

pub(crate) struct Bench {
    pub(crate) openai: ScriptedOpenAi,
    pub(crate) sleuth: Sleuth,
    pub(crate) folder: TempDir,
}

/// A model list with the scripted model as `gpt`.
pub(crate) fn list(openai: &ScriptedOpenAi) -> String {
    format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk\n  base_url: {}\n", openai.url())
}

impl Bench {
    pub(crate) async fn start() -> Self {
        Self::with(|start, _| start).await
    }

    /// A server that is started in a way of its own.
    pub(crate) async fn with(change: impl FnOnce(Start, &TempDir) -> Start) -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let folder = TempDir::new().unwrap();
        let start = Start::serve().env("SLEUTH_DATA_DIR", folder.path().join("data"));
        let sleuth = change(start.models(&list(&openai)).unwrap(), &folder).start().await.unwrap();
        Self { openai, sleuth, folder }
    }

    pub(crate) fn url(&self) -> String {
        self.sleuth.url("").unwrap()
    }

    pub(crate) async fn open(&self, script: &Value, permissions: Option<Value>) -> Chat {
        let more = permissions.map_or_else(|| json!({}), |permissions| json!({"permissions": permissions}));
        Chat::open(&self.url(), &asking(script, more)).await
    }

    pub(crate) async fn answer(&self, session: &str, relay: &str, response: Value) -> (u16, Value) {
        answer(&self.url(), session, relay, response).await
    }
}

/// A request with a script for its model.
pub(crate) fn asking(script: &Value, more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": format!("look FAKE_LLM{script}")}]});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

/// Answers a relay.
pub(crate) async fn answer(base: &str, session: &str, relay: &str, response: Value) -> (u16, Value) {
    let body = json!({"sessionId": session, "response": response});
    let (status, answer) = client::post(&format!("{base}/chat/relay/{relay}"), &body).await.unwrap();
    (status.as_u16(), answer)
}

/// An open stream and what came of it.
pub(crate) struct Chat {
    stream: Stream,
    pub(crate) seen: Vec<Frame>,
}

impl Chat {
    pub(crate) async fn open(base: &str, body: &Value) -> Self {
        let stream = Stream::open(&format!("{base}/chat"), body).await.unwrap();
        Self { stream, seen: Vec::new() }
    }

    /// Leaves, and comes back to what is behind the last event, wherever that may be.
    pub(crate) async fn back(self, base: &str, body: &Value) -> Self {
        let Self { stream, seen } = self;
        drop(stream);
        let last = seen.iter().rev().find(|frame| !frame.id.is_empty()).unwrap();
        let stream = Stream::resume(&format!("{base}/chat"), body, &last.id).await.unwrap();
        Self { stream, seen }
    }

    /// The next event, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let next = timeout(SOON, self.stream.next()).await.expect("an event").unwrap()?;
        self.seen.push(next.clone());
        Some(next)
    }

    /// Reads on until an event of this name, or to the end.
    pub(crate) async fn until(&mut self, name: &str) -> Option<Value> {
        loop {
            let next = self.next().await?;
            if next.event == name {
                return Some(next.data);
            }
        }
    }

    pub(crate) async fn end(&mut self) {
        assert_eq!(self.until("no such event").await, None);
    }

    pub(crate) fn run_id(&self) -> String {
        self.stream.run_id().unwrap()
    }

    pub(crate) fn session(&self) -> &str {
        self.seen[0].data["sessionId"].as_str().unwrap()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let names = self.seen.iter().map(|frame| frame.event.as_str());
        names.filter(|name| !matches!(*name, "text" | "tool_progress")).collect()
    }

    pub(crate) fn outputs(&self) -> Vec<&Value> {
        self.all("tool_result").into_iter().map(|event| &event["output"]).collect()
    }

    /// The data of all events of a name.
    pub(crate) fn all(&self, name: &str) -> Vec<&Value> {
        self.seen.iter().filter(|frame| frame.event == name).map(|frame| &frame.data).collect()
    }
}

pub(crate) fn call(name: &str, args: Value) -> Value {
    Value::Object([("name".to_owned(), name.into()), ("args".to_owned(), args)].into_iter().collect())
}

pub(crate) fn bash(command: &str) -> Value {
    call("bash", json!({"command": command}))
}

pub(crate) fn steps(calls: &[&str]) -> Value {
    json!({"steps": calls.iter().map(|call| vec![bash(call)]).collect::<Vec<_>>(), "answer": "done"})
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    const TICK: Duration = Duration::from_millis(50);
    let waited = timeout(SOON, async {
        while !is_so().await {
            tokio::time::sleep(TICK).await;
        }
    });
    assert!(waited.await.is_ok(), "{what} did not happen within {SOON:?}");
}
