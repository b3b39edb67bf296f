//! Several executors, an agent and a gateway, each a process of its own.

use std::{fs, path::Path, time::Duration};

use grants::SigningKey;
use harness::{
    client,
    models::ScriptedOpenAi,
    process::{Sleuth, Start, descendants},
};
use serde_json::{Value, json};
use tonic::transport::Channel;
use wire::{
    agent::{Event, WatchRequest, agent_client::AgentClient, event::Kind},
    executor::tool_executor_client::ToolExecutorClient,
};

/// How long something may take that is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(90);
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// All of it. Dropping it ends all of it.
pub(crate) struct Fleet {
    openai: ScriptedOpenAi,
    /// Where its agent finds executors.
    urls: String,
    pub(crate) executors: Vec<Sleuth>,
    pub(crate) agent: Sleuth,
    pub(crate) gateway: Sleuth,
    folder: tempfile::TempDir,
}

/// An executor of a fleet, before it starts.
pub(crate) type Prepare<'a> = &'a dyn Fn(usize, Start) -> Start;

impl Fleet {
    /// This many executors, each prepared by its number, at addresses of their own.
    pub(crate) async fn start(
        count: usize,
        prepare: Prepare<'_>,
        agent: impl FnOnce(Start) -> Start,
    ) -> Self {
        let (folder, key) = Self::folder();
        let mut executors = Vec::new();
        for number in 0..count {
            executors.push(executor(folder.path(), &key, number, "127.0.0.1:0", prepare).await);
        }
        let urls: Vec<_> = executors.iter().map(url).collect();
        Self::behind(folder, executors, &urls.join(","), agent).await
    }

    /// The same at one name, which stands for the addresses of all of them. `None` where that cannot be had.
    pub(crate) async fn of_one_name(count: u8) -> Option<Self> {
        if !Start::can_name() {
            return None;
        }
        let (folder, key) = Self::folder();
        let (mut executors, mut port, mut hosts) = (Vec::new(), 0, String::new());
        for number in 1..=count {
            let address = format!("127.0.0.{number}");
            let listen = format!("{address}:{port}");
            let started = executor(folder.path(), &key, number.into(), &listen, &|_, start| start).await;
            port = started.address("address").unwrap().port();
            executors.push(started);
            hosts += &format!("{address} executors.test\n");
        }
        let url = format!("http://executors.test:{port}");
        let named = |start: Start| start.hosts(&hosts).unwrap();
        Some(Self::behind(folder, executors, &url, named).await)
    }

    fn folder() -> (tempfile::TempDir, SigningKey) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("gateway")).unwrap();
        let key = SigningKey::load_or_create(&folder.path().join("gateway/signing.key")).unwrap();
        (folder, key)
    }

    async fn behind(
        folder: tempfile::TempDir,
        executors: Vec<Sleuth>,
        urls: &str,
        prepare: impl FnOnce(Start) -> Start,
    ) -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let start = agent("127.0.0.1:0", urls, &openai, folder.path());
        let agent = prepare(start).start().await.unwrap();
        let gateway = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &agent.grpc().unwrap()]);
        let gateway = gateway.env("SLEUTH_DATA_DIR", folder.path().join("gateway")).start().await.unwrap();
        Self { openai, urls: urls.to_owned(), executors, agent, gateway, folder }
    }

    /// One executor, to whom its agent gets through something else.
    pub(crate) async fn through<T>(between: impl AsyncFnOnce(&Sleuth) -> (String, T)) -> (Self, T) {
        let (folder, key) = Self::folder();
        let executor = executor(folder.path(), &key, 0, "127.0.0.1:0", &|_, start| start).await;
        let (url, between) = between(&executor).await;
        (Self::behind(folder, vec![executor], &url, |start| start).await, between)
    }

    /// Kills the agent, and starts another one in its place.
    pub(crate) async fn another_agent(self) -> Self {
        let address = self.agent.address("grpc").unwrap().to_string();
        self.agent.kill().await.unwrap();
        let start = agent(&address, &self.urls, &self.openai, self.folder.path());
        Self { agent: start.start().await.unwrap(), ..self }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// How many lines a file has; none if it is not there.
    pub(crate) fn lines(&self, name: &str) -> usize {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().count()
    }

    pub(crate) fn chat(&self) -> String {
        self.gateway.url("/api/chat").unwrap()
    }

    /// Asks, and reads the whole answer.
    pub(crate) async fn ask(&self, body: &Value) -> Value {
        let (status, answer) = client::post(&self.chat(), body).await.unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    }

    pub(crate) async fn grpc(&self) -> AgentClient<Channel> {
        AgentClient::connect(self.agent.grpc().unwrap()).await.unwrap()
    }

    /// The events of a run to its end.
    pub(crate) async fn events(&self, run: &str) -> Vec<Event> {
        let request = WatchRequest { run_id: run.to_owned(), ..WatchRequest::default() };
        let mut events = self.grpc().await.watch(request).await.unwrap().into_inner();
        let read = async {
            let mut all = Vec::new();
            while let Some(event) = events.message().await.unwrap() {
                all.push(event);
            }
            all
        };
        tokio::time::timeout(SOON, read).await.expect("the run ends")
    }

    /// What a list says of a run.
    pub(crate) async fn run(&self, run: &str) -> Value {
        let url = self.gateway.url(&format!("/api/runs/{run}")).unwrap();
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }

    /// The executor that a place of an event is.
    pub(crate) fn at(&self, place: &str) -> usize {
        let is_there = |executor: &Sleuth| place.ends_with(&executor.address("address").unwrap().to_string());
        let found = self.executors.iter().position(is_there);
        found.unwrap_or_else(|| panic!("no executor is at {place}"))
    }
}

/// Where an executor listens.
pub(crate) fn url(executor: &Sleuth) -> String {
    format!("http://{}", executor.address("address").unwrap())
}

pub(crate) async fn dial(executor: &Sleuth) -> ToolExecutorClient<Channel> {
    ToolExecutorClient::connect(url(executor)).await.unwrap()
}

fn agent(grpc: &str, urls: &str, openai: &ScriptedOpenAi, folder: &Path) -> Start {
    let models = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    let start = Start::new(["agent", "--grpc", grpc, "--executor", urls]);
    start.env("SLEUTH_DATA_DIR", folder.join("agent")).models(&models).unwrap()
}

async fn executor(
    folder: &Path,
    key: &SigningKey,
    number: usize,
    listen: &str,
    prepare: Prepare<'_>,
) -> Sleuth {
    let start = Start::new(["executor", "--listen", listen])
        .env("SLEUTH_GRANT_KEYS", key.public().to_string())
        .env("SLEUTH_EXECUTOR_STATE", folder.join(format!("state-{number}")));
    prepare(number, start).start().await.unwrap()
}

/// A question on which the model makes these calls, message by message.
pub(crate) fn question(steps: &[Vec<Value>]) -> String {
    format!("look FAKE_LLM{}", json!({ "steps": steps, "answer": "done" }))
}

pub(crate) fn bash(command: &str) -> Value {
    let prefix = command.split(' ').next();
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": [prefix] } })
}

/// Where calls of a run were given to, in the order in which they were.
pub(crate) fn places(events: &[Event]) -> Vec<String> {
    let placed = events.iter().filter_map(|event| match &event.kind {
        Some(Kind::CallPlaced(placed)) => Some(placed.executor.clone()),
        _ => None,
    });
    placed.collect()
}

pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(SOON, async {
        while !is_so().await {
            tokio::time::sleep(TICK).await;
        }
    });
    assert!(waited.await.is_ok(), "{what} did not happen within {SOON:?}");
}

/// Commands below an executor that contain a text.
pub(crate) fn running(executor: &Sleuth, text: &str) -> usize {
    let all = descendants(executor.id().unwrap());
    all.iter().filter(|(_, command)| command.contains(text) && !command.contains("launch")).count()
}
