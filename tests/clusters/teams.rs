//! Teams that share a server without executors of its own: each has the clusters that it brings.

use harness::process::{Start, descendants};
use reqwest::Client;
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};
use wire::account::{CreateAccountRequest, CreateKeyRequest, KeyKind, accounts_client::AccountsClient};

use crate::world::{SOON, TICK, executor};

const KEY: &str = "the-key-of-the-server";

fn as_server<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let bearer: MetadataValue<_> = format!("Bearer {KEY}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    request
}

#[tokio::test]
async fn a_server_without_executors_has_no_cluster_that_all_accounts_share() {
    let folder = tempfile::tempdir().unwrap();
    let start = Start::serve().arg("--require-keys").arg("--executor").arg("none");
    let server = start.env("SLEUTH_API_KEY", KEY).start().await.unwrap();
    let started = descendants(server.id().unwrap());
    assert!(started.is_empty(), "{started:?}");

    let mut accounts = AccountsClient::connect(server.grpc().unwrap()).await.unwrap();
    let mut key = async |account: &str, kind: KeyKind, clusters: &[&str]| {
        let clusters = clusters.iter().map(|name| (*name).to_owned()).collect();
        let account = account.to_owned();
        let wanted = CreateKeyRequest { account, kind: kind.into(), clusters, ..CreateKeyRequest::default() };
        accounts.create_key(as_server(wanted)).await.unwrap().into_inner().secret
    };
    let mut others = AccountsClient::connect(server.grpc().unwrap()).await.unwrap();
    for id in ["acme", "rival"] {
        let account = CreateAccountRequest { id: id.to_owned(), ..CreateAccountRequest::default() };
        others.create_account(as_server(account)).await.unwrap();
    }
    let (acme, rival) = (key("acme", KeyKind::Client, &[]).await, key("rival", KeyKind::Client, &[]).await);
    let token = key("acme", KeyKind::Join, &["eu"]).await;
    let client = Client::new();
    let ask = async |account: &str, key: &str| {
        let url = server.url(&format!("/api/holmes/{account}/chat")).unwrap();
        let body = json!({ "ask": "Is anything wrong on this host?" });
        let answer = client.post(url).bearer_auth(key).json(&body).timeout(SOON).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let nothing =
        (404, json!({ "msg": "No cluster is connected to this account", "error_code": "CLUSTER_ERROR" }));
    assert_eq!(ask("acme", &acme).await, nothing);

    let _eu = executor(folder.path(), server.address("grpc").unwrap(), "eu", &token).await;
    let answered = async {
        loop {
            match ask("acme", &acme).await {
                (404, _) => tokio::time::sleep(TICK).await,
                answered => return answered,
            }
        }
    };
    let (status, answer) = tokio::time::timeout(SOON, answered).await.unwrap();
    assert_eq!((status, &answer["cluster_id"]), (200, &json!("eu")), "{answer}");
    assert_eq!(ask("rival", &rival).await, nothing);
}
