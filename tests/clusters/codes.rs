//! What is answered for every key, account, body and state of the clusters: the codes and bodies of the Robusta API,
//! in the documented order, and the codes of gRPC.

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tonic::{Code, Request, Status, metadata::MetadataValue};
use wire::{
    account::{CreateAccountRequest, CreateKeyRequest, KeyKind, accounts_client::AccountsClient},
    agent::{Caller, ListClustersRequest, agent_client::AgentClient},
};

use crate::world::{SOON, TICK, executor, question};

const KEY: &str = "the-key-of-the-hub";
const WRITE: &str = "robusta_ai:write";
const READ: &str = "robusta_ai:read";

/// Somebody who asks.
struct Asker {
    name: &'static str,
    /// The account of the key; none if it does not count.
    account: Option<&'static str>,
    asks: bool,
    /// The only cluster of the key.
    only: Option<&'static str>,
    key: String,
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
enum Body {
    Bad,
    Unnamed,
    Named(&'static str),
    InPayload(&'static str),
}

impl Body {
    const ALL: [Self; 7] = [
        Self::Bad,
        Self::Unnamed,
        Self::Named("eu"),
        Self::Named("US"),
        Self::Named("gone"),
        Self::Named("mars"),
        Self::InPayload("us"),
    ];

    fn json(self) -> Value {
        match self {
            Self::Bad => json!({ "cluster_id": "mars" }),
            Self::Unnamed => json!({ "ask": "what FAKE_LLM{}" }),
            Self::Named(cluster) => json!({ "ask": "what FAKE_LLM{}", "cluster_id": cluster }),
            Self::InPayload(cluster) => {
                json!({ "ask": "what FAKE_LLM{}", "payload": { "labels": { "cluster": cluster } } })
            }
        }
    }

    fn named(self) -> Option<&'static str> {
        match self {
            Self::Named(cluster) => Some(cluster),
            Self::Bad => Some("mars"),
            Self::Unnamed | Self::InPayload(_) => None,
        }
    }
}

/// What the document says: the cluster that is asked, or why none is.
fn documented(
    asker: &Asker,
    account: &str,
    body: Body,
    connected: &[&'static str],
) -> Result<&'static str, (u16, Value)> {
    let plain = |status: u16, msg: &str| Err((status, json!({ "msg": msg })));
    let cluster =
        |status: u16, msg: String| Err((status, json!({ "msg": msg, "error_code": "CLUSTER_ERROR" })));
    if asker.account != Some(account) {
        return plain(401, "Invalid or missing API key");
    }
    if !asker.asks {
        return plain(403, "The API key lacks the permission robusta_ai:write");
    }
    let is_for = |name: &str| asker.only.is_none_or(|only| only.eq_ignore_ascii_case(name));
    let found: Vec<_> = connected.iter().copied().filter(|name| account == "acme" && is_for(name)).collect();
    let find = |name: &str| found.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
    match body.named() {
        Some(name) if !is_for(name) => {
            return cluster(403, format!("The API key is not for the cluster `{name}`"));
        }
        _ if matches!(body, Body::Bad) => return plain(400, "ask: Field required"),
        _ if found.is_empty() => return cluster(404, "No cluster is connected to this account".to_owned()),
        Some(name) => {
            let missing = || cluster(404, format!("The cluster `{name}` is not connected to this account"));
            return find(name).map_or_else(missing, Ok);
        }
        None => {}
    }
    let in_payload = if let Body::InPayload(name) = body { find(name) } else { None };
    match (in_payload, found.as_slice()) {
        (Some(named), _) | (None, &[named]) => Ok(named),
        (None, _) => {
            let listed = found.join(", ");
            let msg = "The cluster could not be determined: name it in `cluster_id`. Connected clusters";
            cluster(400, format!("{msg}: {listed}"))
        }
    }
}

/// What gRPC says of a cluster that is named.
fn over_grpc(asker: &Asker, cluster: &str, connected: &[&str]) -> Code {
    match asker {
        Asker { account: None, .. } => Code::Unauthenticated,
        Asker { asks: false, .. } => Code::PermissionDenied,
        Asker { only: Some(only), .. } if *only != cluster => Code::PermissionDenied,
        Asker { account: Some("acme"), .. } if connected.contains(&cluster) => Code::Ok,
        Asker { .. } => Code::NotFound,
    }
}

fn bearing<T>(message: T, key: &str) -> Request<T> {
    let mut request = Request::new(message);
    if !key.is_empty() {
        let bearer: MetadataValue<_> = format!("Bearer {key}").parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
    }
    request
}

/// A hub, and a gateway before it, that ask everybody for a key.
struct Hub {
    agent: Sleuth,
    gateway: Sleuth,
    client: reqwest::Client,
}

impl Hub {
    async fn start(openai: &ScriptedOpenAi) -> Self {
        let models =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
        let start = Start::new(["agent", "--executor", "none", "--grpc", "127.0.0.1:0"]);
        let start = start.arg("--name-clusters").arg("false").models(&models).unwrap();
        let agent = start.env("SLEUTH_API_KEY", KEY).start().await.unwrap();
        let gateway = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &agent.grpc().unwrap()]);
        let gateway = gateway.env("SLEUTH_API_KEY", KEY).start().await.unwrap();
        let hub = Self { agent, gateway, client: reqwest::Client::new() };
        let mut accounts = hub.accounts().await;
        for id in ["acme", "rival"] {
            let account = CreateAccountRequest { id: id.to_owned(), ..CreateAccountRequest::default() };
            accounts.create_account(bearing(account, KEY)).await.unwrap();
        }
        hub
    }

    async fn accounts(&self) -> AccountsClient<tonic::transport::Channel> {
        AccountsClient::connect(self.agent.grpc().unwrap()).await.unwrap()
    }

    async fn key(&self, account: &str, kind: KeyKind, scope: &str, cluster: Option<&str>) -> String {
        let scopes = if scope.is_empty() { Vec::new() } else { vec![scope.to_owned()] };
        let request = CreateKeyRequest {
            account: account.to_owned(),
            kind: kind.into(),
            scopes,
            clusters: cluster.into_iter().map(str::to_owned).collect(),
            ..CreateKeyRequest::default()
        };
        self.accounts().await.create_key(bearing(request, KEY)).await.unwrap().into_inner().secret
    }

    /// Has a cluster of `acme` dial in.
    async fn connect(&self, folder: &std::path::Path, cluster: &str) -> Sleuth {
        let token = self.key("acme", KeyKind::Join, "", Some(cluster)).await;
        executor(folder, self.agent.address("grpc").unwrap(), cluster, &token).await
    }

    async fn until_connected(&self, clusters: &[&str]) {
        let mut agent = AgentClient::connect(self.agent.grpc().unwrap()).await.unwrap();
        let reached = async {
            loop {
                let caller = Some(Caller { account: "acme".to_owned(), ..Caller::default() });
                let listed = agent.list_clusters(bearing(ListClustersRequest { caller }, KEY)).await;
                let names = listed.unwrap().into_inner().clusters.into_iter().map(|cluster| cluster.name);
                if names.eq(clusters.iter().copied()) {
                    return;
                }
                tokio::time::sleep(TICK).await;
            }
        };
        tokio::time::timeout(SOON, reached).await.unwrap();
    }

    async fn ask(&self, key: &str, account: &str, body: &Value) -> (u16, Value) {
        let url = self.gateway.url(&format!("/api/holmes/{account}/chat")).unwrap();
        let request = self.client.post(url).json(body).timeout(SOON);
        let request = if key.is_empty() { request } else { request.bearer_auth(key) };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Everybody asks everything of every account.
    async fn check(&self, askers: &[Asker], connected: &[&'static str]) -> usize {
        let mut asked = 0;
        for asker in askers {
            for account in ["acme", "rival", "none"] {
                for body in Body::ALL {
                    let place = format!("{} of {account} with {body:?} where {connected:?}", asker.name);
                    let expected = documented(asker, account, body, connected);
                    let mut sent = body.json();
                    // What fails before the first event fails with a status.
                    sent["stream"] = (expected.is_err() && asked % 2 == 0).into();
                    let (status, answer) = self.ask(&asker.key, account, &sent).await;
                    match expected {
                        Ok(cluster) => {
                            assert_eq!((status, &answer["cluster_id"]), (200, &json!(cluster)), "{place}");
                            assert!(answer["analysis"].is_string(), "{place}: {answer}");
                        }
                        Err(refused) => assert_eq!((status, answer), refused, "{place}"),
                    }
                    asked += 1;
                }
            }
            for cluster in ["eu", "us", "gone", "mars"] {
                let place = format!("{} over gRPC about {cluster} where {connected:?}", asker.name);
                let mut agent = AgentClient::connect(self.agent.grpc().unwrap()).await.unwrap();
                let answer = agent.chat(bearing(question(&[], cluster), &asker.key)).await;
                let code = answer.as_ref().err().map_or(Code::Ok, Status::code);
                assert_eq!(code, over_grpc(asker, cluster, connected), "{place}: {answer:?}");
                asked += 1;
            }
        }
        asked
    }
}

#[tokio::test]
async fn every_key_account_body_and_state_of_clusters_has_its_documented_answer() {
    let folder = tempfile::tempdir().unwrap();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let hub = Hub::start(&openai).await;
    let mut askers = Vec::new();
    for (name, account, scope, only) in [
        ("a key", "acme", WRITE, None),
        ("a key that may look", "acme", READ, None),
        ("a key for metrics", "acme", "metrics:read", None),
        ("an administrator", "acme", "admin:write", None),
        ("a key for eu", "acme", WRITE, Some("eu")),
        ("a key for a cluster that is away", "acme", WRITE, Some("gone")),
        ("a key for eu that may look", "acme", READ, Some("eu")),
        ("a rival", "rival", WRITE, None),
        ("a rival with a name of ours", "rival", WRITE, Some("eu")),
    ] {
        let key = hub.key(account, KeyKind::Client, scope, only).await;
        askers.push(Asker { name, account: Some(account), asks: scope == WRITE, only, key });
    }
    let token = hub.key("acme", KeyKind::Join, "", Some("eu")).await;
    let gone = hub.connect(folder.path(), "gone").await;
    hub.until_connected(&["gone"]).await;
    gone.stop().await.unwrap();
    let of_cluster = std::fs::read_to_string(folder.path().join("state-gone/cluster.key")).unwrap();
    for (name, key) in [
        ("nobody", String::new()),
        ("a guess", format!("slk_0123456789abcdef_{}", "0".repeat(64))),
        ("a token to join", token),
        ("a cluster", of_cluster),
    ] {
        askers.push(Asker { name, account: None, asks: false, only: None, key });
    }

    hub.until_connected(&[]).await;
    let mut asked = hub.check(&askers, &[]).await;
    let _eu = hub.connect(folder.path(), "eu").await;
    hub.until_connected(&["eu"]).await;
    asked += hub.check(&askers, &["eu"]).await;
    let _us = hub.connect(folder.path(), "us").await;
    hub.until_connected(&["eu", "us"]).await;
    asked += hub.check(&askers, &["eu", "us"]).await;
    assert!(asked >= 900, "{asked}");
}
