//! A cluster that dials out: it joins once, answers questions, and comes back with what it runs when its link is cut.

#![cfg(test)]

use std::{fs, io::Write as _, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start, descendants},
};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tonic::{Code, transport::Channel};
use wire::{
    account::{CreateKeyRequest, KeyKind, accounts_client::AccountsClient},
    agent::{
        ChatRequest, Event, ListClustersRequest, ToolResult, ToolStatus, agent_client::AgentClient,
        event::Kind,
    },
    cluster::{JoinRequest, cluster_link_client::ClusterLinkClient},
};

const SOON: Duration = Duration::from_secs(40);
const TICK: Duration = Duration::from_millis(20);

/// A way to an address that can be cut.
struct Wire {
    address: SocketAddr,
    whole: Arc<watch::Sender<bool>>,
}

impl Wire {
    async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let whole = Arc::new(watch::Sender::new(true));
        let state = Arc::clone(&whole);
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let mut cut = state.subscribe();
                if !*cut.borrow() {
                    continue;
                }
                tokio::spawn(async move {
                    let mut to = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                        _ = cut.wait_for(|whole| !whole) => {}
                    }
                });
            }
        });
        Self { address, whole }
    }

    fn set_whole(&self, whole: bool) {
        self.whole.send_replace(whole);
    }
}

async fn token(agent: &str, cluster: &str) -> String {
    let mut accounts = AccountsClient::connect(agent.to_owned()).await.unwrap();
    let request = CreateKeyRequest {
        kind: KeyKind::Join.into(),
        clusters: vec![cluster.to_owned()],
        ..CreateKeyRequest::default()
    };
    accounts.create_key(request).await.unwrap().into_inner().secret
}

async fn executor(folder: &Path, agent: SocketAddr, token: &str) -> Sleuth {
    let url = format!("http://{agent}");
    let start = Start::new(["executor", "--connect", &url, "--cluster", "prod", "--name", "one"]);
    let start = start.env("SLEUTH_EXECUTOR_STATE", folder.join("state")).env("SLEUTH_JOIN_TOKEN", token);
    start.start().await.unwrap()
}

async fn connected(agent: &mut AgentClient<Channel>) -> Vec<String> {
    let answer = agent.list_clusters(ListClustersRequest { caller: None }).await.unwrap().into_inner();
    answer.clusters.into_iter().map(|cluster| cluster.name).filter(|name| name != "local").collect()
}

async fn until_connected(agent: &mut AgentClient<Channel>, clusters: &[&str]) {
    let reached = async {
        while connected(agent).await != clusters {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap();
}

fn waiting(executor: &Sleuth) -> usize {
    let all = descendants(executor.id().unwrap());
    all.iter().filter(|(_, command)| command.starts_with("tail -f")).count()
}

async fn until_waiting(executor: &Sleuth) {
    let reached = async {
        while waiting(executor) != 1 {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap();
}

fn question(file: &Path, cluster: &str) -> ChatRequest {
    let command = format!("tail -f {} | grep -m 1 done", file.display());
    let call = json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": ["tail"] } });
    let script = json!({ "steps": [[call]] });
    ChatRequest {
        question: format!("look FAKE_LLM{script}"),
        cluster: cluster.to_owned(),
        ..ChatRequest::default()
    }
}

/// The result of the only call.
async fn result(mut events: tonic::Streaming<Event>) -> ToolResult {
    let found = async {
        while let Some(event) = events.message().await.unwrap() {
            if let Some(Kind::ToolFinished(finished)) = event.kind {
                return finished.result.unwrap();
            }
        }
        panic!("the call did not end")
    };
    tokio::time::timeout(SOON, found).await.unwrap()
}

/// Lets the command end: `tail` notices that nobody listens when it writes once more.
async fn say_done(file: &Path) {
    loop {
        let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
        writeln!(file, "done").unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_cluster_dials_out_and_comes_back_with_what_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, file) = (folder.path(), folder.path().join("file"));
    fs::write(&file, "").unwrap();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let models = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    let hub = Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", "unix:/nonexistent"]);
    let hub = hub.models(&models).unwrap().start().await.unwrap();
    let mut agent = AgentClient::connect(hub.grpc().unwrap()).await.unwrap();
    let nobody = agent.chat(question(&file, "prod")).await.unwrap_err();
    assert_eq!(nobody.code(), Code::NotFound, "{nobody:?}");
    assert!(nobody.message().contains("connected are: none"), "{nobody:?}");

    let wire = Wire::to(hub.address("grpc").unwrap()).await;
    let token = token(&hub.grpc().unwrap(), "prod").await;
    let executor = executor(folder, wire.address, &token).await;
    until_connected(&mut agent, &["prod"]).await;
    let mut links = ClusterLinkClient::connect(hub.grpc().unwrap()).await.unwrap();
    let again = links.join(JoinRequest { token: token.clone() }).await.unwrap_err();
    assert_eq!(again.code(), Code::Unauthenticated, "a token counts once");

    let events = agent.chat(question(&file, "prod")).await.unwrap().into_inner();
    until_waiting(&executor).await;
    wire.set_whole(false);
    until_connected(&mut agent, &[]).await;
    assert_eq!(waiting(&executor), 1, "it goes on while nobody can see it");
    wire.set_whole(true);
    until_connected(&mut agent, &["prod"]).await;
    assert_eq!(waiting(&executor), 1, "and it is not begun again");
    let ended = tokio::select! {
        ended = result(events) => ended,
        () = say_done(&file) => unreachable!("it writes until it is told"),
    };
    assert_eq!(ended.status(), ToolStatus::Success, "{ended:?}");

    executor.stop().await.unwrap();
    until_connected(&mut agent, &[]).await;
    let executor = self::executor(folder, wire.address, &token).await;
    until_connected(&mut agent, &["prod"]).await;
    assert!(executor.id().is_some(), "the key that it kept counts, not the token that is used up");
}
