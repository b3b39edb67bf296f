//! Hubs, and clusters that dial in.

use std::{
    fs,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tonic::transport::Channel;
use wire::{
    account::{CreateKeyRequest, KeyKind, accounts_client::AccountsClient},
    agent::{ChatRequest, Event, ListClustersRequest, agent_client::AgentClient},
};

pub(crate) const SOON: Duration = Duration::from_secs(90);
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A hub with a scripted model, a client of it, and a file that commands can follow.
pub(crate) struct Bench {
    pub(crate) openai: ScriptedOpenAi,
    pub(crate) hub: Sleuth,
    pub(crate) agent: AgentClient<Channel>,
    pub(crate) file: PathBuf,
    folder: TempDir,
}

impl Bench {
    /// `arguments` are more ones of the hub.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let openai = ScriptedOpenAi::start().await.unwrap();
        let hub = hub(&openai, arguments).await;
        Self { agent: agent(&hub).await, openai, hub, file, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn grpc(&self) -> SocketAddr {
        self.hub.address("grpc").unwrap()
    }

    /// Has executors of clusters dial in.
    pub(crate) async fn connect(&mut self, clusters: &[&str]) -> Vec<Sleuth> {
        let mut executors = Vec::new();
        for cluster in clusters {
            let token = key(&self.hub, &[*cluster], true).await;
            executors.push(executor(self.folder(), self.grpc(), cluster, &token).await);
        }
        until_connected(&mut self.agent, clusters).await;
        executors
    }
}

/// A port that nobody uses now, and that nobody gets who asks for any.
pub(crate) async fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(20_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).await.is_ok() {
            return port;
        }
    }
}

/// An agent without executors of its own, and more arguments.
pub(crate) async fn hub(openai: &ScriptedOpenAi, arguments: &[&str]) -> Sleuth {
    let models = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    let mut start = Start::new(["agent", "--executor", "none"]).models(&models).unwrap();
    if !arguments.contains(&"--grpc") {
        start = start.arg("--grpc").arg("127.0.0.1:0");
    }
    arguments.iter().fold(start, |start, argument| start.arg(*argument)).start().await.unwrap()
}

pub(crate) async fn agent(hub: &Sleuth) -> AgentClient<Channel> {
    AgentClient::connect(hub.grpc().unwrap()).await.unwrap()
}

/// Makes a key, or with `join` a token.
pub(crate) async fn key(hub: &Sleuth, clusters: &[&str], join: bool) -> String {
    let mut accounts = AccountsClient::connect(hub.grpc().unwrap()).await.unwrap();
    let kind = if join { KeyKind::Join } else { KeyKind::Client };
    let request = CreateKeyRequest {
        kind: kind.into(),
        clusters: clusters.iter().map(|name| (*name).to_owned()).collect(),
        ..CreateKeyRequest::default()
    };
    accounts.create_key(request).await.unwrap().into_inner().secret
}

/// An executor of a cluster that dials an agent. Its commands see the cluster's name as `WHERE`.
pub(crate) async fn executor(folder: &Path, agent: SocketAddr, cluster: &str, token: &str) -> Sleuth {
    let url = format!("http://{agent}");
    let start = Start::new(["executor", "--connect", &url, "--cluster", cluster, "--name", "one"])
        .env("SLEUTH_EXECUTOR_STATE", folder.join(format!("state-{cluster}")))
        .env("SLEUTH_EXECUTOR_PASS_ENV", "WHERE")
        .env("SLEUTH_BASH_ALLOW", "printenv")
        .env("WHERE", format!("at-{cluster}"))
        .env("SLEUTH_JOIN_TOKEN", token);
    start.start().await.unwrap()
}

async fn connected(agent: &mut AgentClient<Channel>) -> Vec<String> {
    let answer = agent.list_clusters(ListClustersRequest { caller: None }).await.unwrap().into_inner();
    answer.clusters.into_iter().map(|cluster| cluster.name).collect()
}

pub(crate) async fn until_connected(agent: &mut AgentClient<Channel>, clusters: &[&str]) {
    let reached = async {
        while connected(agent).await != clusters {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap();
}

/// A question whose model makes these calls of bash, one after the other.
pub(crate) fn question(calls: &[Value], cluster: &str) -> ChatRequest {
    let call = |arguments: &Value| {
        let mut arguments = arguments.clone();
        let program = arguments["command"].as_str().and_then(|command| command.split(' ').next());
        arguments["suggested_prefixes"] = json!([program]);
        json!([{ "name": "bash", "args": arguments }])
    };
    let script = json!({ "steps": calls.iter().map(call).collect::<Vec<_>>() });
    ChatRequest {
        question: format!("look FAKE_LLM{script}"),
        cluster: cluster.to_owned(),
        ..ChatRequest::default()
    }
}

/// All events of a run.
pub(crate) async fn events(mut events: tonic::Streaming<Event>) -> Vec<Event> {
    let all = async {
        let mut all = Vec::new();
        while let Some(event) = events.message().await.unwrap() {
            all.push(event);
        }
        all
    };
    tokio::time::timeout(SOON, all).await.unwrap()
}

/// Lets a command end that follows a file: `tail` notices that nobody listens when it writes once more.
pub(crate) async fn say_done(file: &Path) {
    loop {
        let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
        writeln!(file, "done").unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
