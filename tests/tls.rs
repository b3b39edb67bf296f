//! TLS: what is said between services, and to them, is for nobody else, and both ends can be asked who they are.

#![cfg(test)]

use harness::{
    papers::Papers,
    process::{Sleuth, Start},
};
use wire::{
    account::{CreateKeyRequest, accounts_client::AccountsClient},
    agent::{GetReadinessRequest, agent_client::AgentClient},
    executor::{ListToolsRequest, tool_executor_client::ToolExecutorClient},
};

/// What `sleuth models` says at a server.
async fn models(sleuth: &Sleuth, papers: impl FnOnce(Start) -> Start) -> Result<String, String> {
    let server = format!("https://{}", sleuth.address("grpc").unwrap());
    let start = papers(Start::new(["models", "--server", &server]));
    let output = start.command().unwrap().output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[tokio::test]
async fn both_ports_speak_tls_and_nothing_else() {
    let papers = Papers::issue().unwrap();
    let sleuth = papers.prove(Start::serve()).start().await.unwrap();
    let url = format!("https://{}/readyz", sleuth.address("http").unwrap());
    let answer = papers.client(false).unwrap().get(&url).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert!(reqwest::get(&url).await.is_err(), "its authority is not known to this machine");
    assert!(reqwest::get(sleuth.url("/readyz").unwrap()).await.is_err(), "nothing is said in the clear");

    let listed = models(&sleuth, |start| papers.trust(start)).await.unwrap();
    assert!(listed.contains("builtin/triage"), "{listed}");
    let stranger = Papers::issue().unwrap();
    models(&sleuth, |start| stranger.trust(start)).await.unwrap_err();
}

#[tokio::test]
async fn a_server_can_ask_who_its_clients_are() {
    let (papers, stranger) = (Papers::issue().unwrap(), Papers::issue().unwrap());
    let start = papers.prove(Start::serve()).env("SLEUTH_TLS_CLIENT_CA", papers.file("ca.pem"));
    let sleuth = start.start().await.unwrap();
    let url = format!("https://{}/readyz", sleuth.address("http").unwrap());
    assert_eq!(papers.client(true).unwrap().get(&url).send().await.unwrap().status(), 200);
    assert!(papers.client(false).unwrap().get(&url).send().await.is_err());

    models(&sleuth, |start| papers.prove(papers.trust(start))).await.unwrap();
    models(&sleuth, |start| papers.trust(start)).await.unwrap_err();
    models(&sleuth, |start| stranger.prove(papers.trust(start))).await.unwrap_err();
}

#[tokio::test]
async fn services_apart_prove_themselves_to_each_other() {
    let papers = Papers::issue().unwrap();
    let both =
        |start: Start| papers.prove(papers.trust(start)).env("SLEUTH_TLS_CLIENT_CA", papers.file("ca.pem"));
    let executor = both(Start::new(["executor", "--listen", "127.0.0.1:0"])).start().await.unwrap();
    let url = format!("https://{}", executor.address("address").unwrap());
    let agent =
        both(Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", &url])).start().await.unwrap();
    let url = format!("https://{}", agent.address("grpc").unwrap());
    let gateway =
        both(Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &url])).start().await.unwrap();
    let url = format!("https://{}/readyz", gateway.address("http").unwrap());
    let ready = papers.client(true).unwrap().get(&url).send().await.unwrap();
    assert_eq!(ready.status(), 200, "{}", ready.text().await.unwrap());
}

#[tokio::test]
async fn an_executor_beyond_loopback_wants_to_know_who_comes() {
    let papers = Papers::issue().unwrap();
    let beyond = || Start::new(["executor", "--listen", "0.0.0.0:0"]);
    let refused = beyond().start().await.unwrap_err().to_string();
    assert!(refused.contains("reachable from other machines"), "{refused}");
    let refused = papers.prove(beyond()).start().await.unwrap_err().to_string();
    assert!(
        refused.contains("reachable from other machines"),
        "encryption alone tells nobody apart: {refused}"
    );

    let asks = |start: Start| papers.prove(start).env("SLEUTH_TLS_CLIENT_CA", papers.file("ca.pem"));
    let port = |executor: &Sleuth| executor.address("address").unwrap().port();
    let executor = asks(beyond()).start().await.unwrap();
    let url = format!("https://127.0.0.1:{}", port(&executor));
    let agent = || papers.trust(Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", &url]));
    let nobody = agent().start().await.unwrap();
    let mut client = AgentClient::connect(nobody.grpc().unwrap()).await.unwrap();
    let ready = client.get_readiness(GetReadinessRequest::default()).await.unwrap().into_inner();
    assert!(!ready.ready && ready.missing.iter().any(|what| what.contains("executor")), "{ready:?}");
    let known = asks(agent()).start().await.unwrap();
    let grpc = format!("https://{}", known.address("grpc").unwrap());
    let gateway = asks(papers.trust(Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &grpc])));
    let gateway = gateway.start().await.unwrap();
    let url = format!("https://{}/readyz", gateway.address("http").unwrap());
    assert_eq!(papers.client(true).unwrap().get(&url).send().await.unwrap().status(), 200);

    let executor = beyond().env("SLEUTH_API_KEY", "k-of-executors").start().await.unwrap();
    let mut client =
        ToolExecutorClient::connect(format!("http://127.0.0.1:{}", port(&executor))).await.unwrap();
    let refused = client.list_tools(ListToolsRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unauthenticated);
    let mut with_key = tonic::Request::new(ListToolsRequest::default());
    with_key.metadata_mut().insert("authorization", "Bearer k-of-executors".parse().unwrap());
    client.list_tools(with_key).await.unwrap();
}

#[tokio::test]
async fn no_port_lets_everybody_in_from_elsewhere() {
    let here = "127.0.0.1:0";
    for arguments in [
        ["serve", "--http", "0.0.0.0:0", "--grpc", here],
        ["serve", "--http", here, "--grpc", "0.0.0.0:0"],
        ["gateway", "--http", "0.0.0.0:0", "--agent", "http://127.0.0.1:1"],
        ["agent", "--grpc", "0.0.0.0:0", "--executor", "none"],
        ["agent", "--grpc", here, "--metrics", "0.0.0.0:0"],
        ["executor", "--listen", here, "--metrics", "0.0.0.0:0"],
    ] {
        let refused = Start::new(arguments).start().await.unwrap_err();
        let refused = format!("{refused:#}");
        assert!(refused.contains("reachable from other machines"), "{arguments:?}: {refused}");
    }
}

#[tokio::test]
async fn metrics_are_for_whoever_has_a_key() {
    let start =
        Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", "none", "--metrics", "0.0.0.0:0"]);
    let agent = start.env("SLEUTH_API_KEY", "k-of-all").start().await.unwrap();
    let mut accounts = AccountsClient::connect(agent.grpc().unwrap()).await.unwrap();
    let mut key = async |scope: &str| {
        let asked = CreateKeyRequest { scopes: vec![scope.to_owned()], ..CreateKeyRequest::default() };
        let mut asked = tonic::Request::new(asked);
        asked.metadata_mut().insert("authorization", "Bearer k-of-all".parse().unwrap());
        accounts.create_key(asked).await.unwrap().into_inner().secret
    };
    let (reads, asks) = (key("metrics:read").await, key("robusta_ai:write").await);
    let url = format!("http://127.0.0.1:{}", agent.address("metrics").unwrap().port());
    let client = reqwest::Client::new();
    for (path, key, status) in [
        ("/healthz", "", 200),
        ("/metrics", "", 401),
        ("/metrics", "wrong", 401),
        ("/metrics", "slk_0123456789abcdef_0123456789abcdef", 401),
        ("/metrics", &asks, 403),
        ("/metrics", &reads, 200),
        ("/metrics", "k-of-all", 200),
    ] {
        let answer = client.get(format!("{url}{path}")).bearer_auth(key).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path} {key}");
        let told = answer.text().await.unwrap();
        assert_eq!(told.contains("sleuth_"), path == "/metrics" && status == 200, "{path} {key}: {told}");
    }
}

#[tokio::test]
async fn a_certificate_opens_the_metrics_as_it_opens_the_rest() {
    let papers = Papers::issue().unwrap();
    let start = Start::new(["executor", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0"]);
    let start = papers.prove(start).env("SLEUTH_TLS_CLIENT_CA", papers.file("ca.pem"));
    let executor = start.start().await.unwrap();
    let url = format!("https://127.0.0.1:{}/metrics", executor.address("metrics").unwrap().port());
    let read = papers.client(true).unwrap().get(&url).send().await.unwrap();
    assert_eq!(read.status(), 200);
    assert!(papers.client(false).unwrap().get(&url).send().await.is_err());
    assert!(reqwest::get(url.replace("https", "http")).await.is_err(), "nothing is said in the clear");
}
