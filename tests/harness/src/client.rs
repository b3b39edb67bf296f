//! An HTTP client that reads event streams the way a browser does.

use anyhow::Context as _;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Its `id:`; empty if it has none.
    pub id: String,
    /// Its `event:`.
    pub event: String,
    /// Its `data:`, which must be JSON.
    pub data: Value,
}

/// Posts JSON and reads the JSON answer.
///
/// # Errors
/// If the server cannot be reached or answers something else than JSON.
pub async fn post(url: &str, body: &Value) -> anyhow::Result<(StatusCode, Value)> {
    let response = Client::new().post(url).json(body).send().await?;
    let status = response.status();
    Ok((status, response.json().await?))
}

/// Posts JSON and reads the event stream to its end.
///
/// # Errors
/// If the answer is not an event stream.
pub async fn stream(url: &str, body: &Value) -> anyhow::Result<Vec<Frame>> {
    let mut stream = Stream::open(url, body).await?;
    let mut frames = Vec::new();
    while let Some(frame) = stream.next().await? {
        frames.push(frame);
    }
    Ok(frames)
}

/// An open event stream. Dropping it closes the connection.
#[derive(Debug)]
pub struct Stream {
    response: Response,
    rest: Vec<u8>,
}

impl Stream {
    /// Posts JSON and begins to read the event stream.
    ///
    /// # Errors
    /// If the answer is not an event stream.
    pub async fn open(url: &str, body: &Value) -> anyhow::Result<Self> {
        Self::read(Client::new().post(url).json(body).send().await?).await
    }

    /// Posts JSON again, and begins to read the event stream behind an event.
    ///
    /// # Errors
    /// If the answer is not an event stream.
    pub async fn resume(url: &str, body: &Value, after: &str) -> anyhow::Result<Self> {
        Self::read(Client::new().post(url).header("Last-Event-ID", after).json(body).send().await?).await
    }

    /// Begins to read the event stream at a URL.
    ///
    /// # Errors
    /// If the answer is not an event stream.
    pub async fn get(url: &str) -> anyhow::Result<Self> {
        Self::read(Client::new().get(url).send().await?).await
    }

    /// The id of the run whose events these are.
    pub fn run_id(&self) -> Option<String> {
        Some(self.response.headers().get("x-sleuth-run-id")?.to_str().ok()?.to_owned())
    }

    /// Begins to read the event stream of an answer.
    ///
    /// # Errors
    /// If the answer is not an event stream.
    pub async fn read(response: Response) -> anyhow::Result<Self> {
        let kind =
            response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            let status = response.status();
            anyhow::bail!("{status}: {}", response.text().await?);
        }
        Ok(Self { response, rest: Vec::new() })
    }

    /// The next event; `None` at the end of the stream. Comments are passed over.
    ///
    /// # Errors
    /// If the connection breaks or an event cannot be read.
    pub async fn next(&mut self) -> anyhow::Result<Option<Frame>> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..end + 2).collect();
                match frame(std::str::from_utf8(&block)?)? {
                    Some(frame) => return Ok(Some(frame)),
                    None => continue,
                }
            }
            match self.response.chunk().await? {
                Some(bytes) => self.rest.extend_from_slice(&bytes),
                None if self.rest.is_empty() => return Ok(None),
                None => anyhow::bail!("the stream ended inside an event"),
            }
        }
    }
}

fn frame(block: &str) -> anyhow::Result<Option<Frame>> {
    let field = |name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.trim_start().to_owned())
    };
    let Some(data) = field("data") else { return Ok(None) };
    let event = field("event").context("an event without a name")?;
    let data = serde_json::from_str(&data).with_context(|| format!("{event}: not JSON: {data}"))?;
    Ok(Some(Frame { id: field("id").unwrap_or_default(), event, data }))
}
