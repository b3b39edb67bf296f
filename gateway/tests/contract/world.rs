//! A gateway in front of an agent, on free ports, until it is dropped.

use std::{io, time::Duration};

use gateway::{Config, Gateway};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::agent::{Act, Stage};

/// More than anything here may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) address: String,
    pub(crate) agent: Stage,
    pub(crate) shutdown: CancellationToken,
    pub(crate) serving: JoinHandle<io::Result<()>>,
    client: reqwest::Client,
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl World {
    pub(crate) async fn new(config: Config, act: Act) -> Self {
        Self::with(config, Stage::new(act)).await
    }

    pub(crate) async fn with(config: Config, agent: Stage) -> Self {
        Self::before(agent.open().await, config, agent).await
    }

    /// A gateway in front of whatever a transport leads to.
    pub(crate) async fn before(transport: wire::Transport, config: Config, agent: Stage) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shutdown = CancellationToken::new();
        let gateway = Gateway::new(config, transport);
        let serving = tokio::spawn(gateway.serve(listener, shutdown.clone()));
        let client = reqwest::Client::builder().timeout(DEADLINE).build().unwrap();
        Self { address, agent, shutdown, serving, client }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    /// `POST /api/chat` with this text as JSON.
    pub(crate) fn ask(&self, body: &str) -> RequestBuilder {
        self.post("/api/chat", body)
    }

    /// This text as JSON.
    pub(crate) fn post(&self, path: &str, body: &str) -> RequestBuilder {
        let request = self.request(Method::POST, path);
        request.header("content-type", "application/json").body(body.to_owned())
    }
}

/// The status and the JSON body.
pub(crate) async fn json(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(header(&response, "content-type"), Some("application/json"), "status {status}");
    assert!(header(&response, "x-request-id").is_some());
    let body = response.text().await.unwrap();
    (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
}

/// The events of a stream, heartbeats left out.
pub(crate) async fn events(request: RequestBuilder) -> Vec<(String, Value)> {
    let text = request.send().await.unwrap().text().await.unwrap();
    let frames = text.split("\n\n").filter(|frame| !frame.is_empty() && !frame.starts_with(':'));
    let field = |frame: &str, name: &str| {
        frame.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned)).unwrap_or_default()
    };
    frames
        .map(|frame| (field(frame, "event: "), serde_json::from_str(&field(frame, "data: ")).unwrap()))
        .collect()
}

pub(crate) fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}
