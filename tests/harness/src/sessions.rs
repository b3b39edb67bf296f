//! A client of the session dialect.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::{Frame, Stream},
    process::Sleuth,
};

/// Long enough for a loaded machine; never waited for in a passing test.
const SOON: Duration = Duration::from_secs(60);

/// The sessions of a server.
#[derive(Clone, Debug)]
pub struct Sessions {
    base: String,
    http: Client,
}

impl Sessions {
    /// Those of a server.
    ///
    /// # Errors
    /// If it serves no HTTP.
    pub fn of(sleuth: &Sleuth) -> anyhow::Result<Self> {
        Ok(Self { base: sleuth.url("/api/v1")?, http: Client::new() })
    }

    /// The address of a path of the dialect.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Asks with JSON; an answer without a body is `null`.
    ///
    /// # Errors
    /// If the server cannot be reached or answers something else than JSON.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, Value)> {
        let request = self.http.request(method, self.url(path));
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await?;
        let (status, text) = (response.status().as_u16(), response.text().await?);
        let body = if text.is_empty() { Ok(Value::Null) } else { serde_json::from_str(&text) };
        Ok((status, body.with_context(|| text.clone())?))
    }

    /// Gets JSON.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn get(&self, path: &str) -> anyhow::Result<(u16, Value)> {
        self.ask(Method::GET, path, None).await
    }

    /// Posts JSON.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<(u16, Value)> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// A new session.
    ///
    /// # Errors
    /// If there is none.
    pub async fn create(&self, settings: &Value) -> anyhow::Result<String> {
        let (status, session) = self.post("/sessions", settings).await?;
        anyhow::ensure!(status == 201, "{status}: {session}");
        Ok(session["id"].as_str().context("a session without id")?.to_owned())
    }

    /// Says a text; the message as it stands.
    ///
    /// # Errors
    /// If it is not taken.
    pub async fn say(&self, session: &str, text: &str) -> anyhow::Result<Value> {
        let (status, said) = self.post(&format!("/sessions/{session}/messages"), &message(text)).await?;
        anyhow::ensure!(status == 201, "{status}: {said}");
        Ok(said)
    }

    /// Begins to read the events of a session.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn watch(&self, session: &str, query: &str) -> anyhow::Result<Stream> {
        Stream::get(&self.url(&format!("/sessions/{session}/sse?{query}"))).await
    }
}

/// The body that says a text.
pub fn message(text: &str) -> Value {
    json!({ "message": { "content": [{ "type": "text", "text": text }] } })
}

/// Reads up to and with an event.
///
/// # Errors
/// If the stream ends or nothing comes before the event does.
pub async fn until(stream: &mut Stream, event: &str) -> anyhow::Result<Vec<Frame>> {
    let mut frames = Vec::new();
    let reading = async {
        while let Some(frame) = stream.next().await? {
            let last = frame.event == event;
            frames.push(frame);
            if last {
                return anyhow::Ok(());
            }
        }
        anyhow::bail!("the stream ended")
    };
    let read = timeout(SOON, reading).await.unwrap_or_else(|_| Err(anyhow::anyhow!("nothing comes")));
    read.with_context(|| format!("no {event} after {:?}", names(&frames)))?;
    Ok(frames)
}

/// The names of events, without deltas and what belongs to the connection.
pub fn names(frames: &[Frame]) -> Vec<&str> {
    let names = frames.iter().map(|frame| frame.event.as_str());
    names.filter(|name| !name.ends_with(".delta") && *name != "connected").collect()
}

/// What the first event of a name says.
///
/// # Errors
/// If there is none.
pub fn find<'a>(frames: &'a [Frame], event: &str) -> anyhow::Result<&'a Value> {
    let found = frames.iter().find(|frame| frame.event == event);
    Ok(&found.with_context(|| format!("no {event} in {:?}", names(frames)))?.data["data"])
}
