//! TLS: what is said between services, and to them, is for nobody else, and both ends can be asked who they are.

#![cfg(test)]

use std::path::PathBuf;

use harness::process::{Sleuth, Start};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use wire::{
    agent::{GetReadinessRequest, agent_client::AgentClient},
    executor::{ListToolsRequest, tool_executor_client::ToolExecutorClient},
};

/// An authority, and a certificate for this machine that it has issued.
struct Papers {
    folder: TempDir,
}

impl Papers {
    fn issue() -> Self {
        let folder = TempDir::new().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        for (name, text) in
            [("ca.pem", authority.pem()), ("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A process that has the certificate.
    fn prove(&self, start: Start) -> Start {
        start.env("SLEUTH_TLS_CERT", self.file("cert.pem")).env("SLEUTH_TLS_KEY", self.file("key.pem"))
    }

    fn trust(&self, start: Start) -> Start {
        start.env("SLEUTH_TLS_CA", self.file("ca.pem"))
    }

    /// A client of HTTP, which proves itself if it is to.
    fn client(&self, proves: bool) -> reqwest::Client {
        let read = |name| std::fs::read(self.file(name)).unwrap();
        let authority = reqwest::Certificate::from_pem(&read("ca.pem")).unwrap();
        let client = reqwest::Client::builder().tls_certs_only([authority]);
        let identity = || reqwest::Identity::from_pem(&[read("cert.pem"), read("key.pem")].concat()).unwrap();
        if proves { client.identity(identity()) } else { client }.build().unwrap()
    }
}

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
    let papers = Papers::issue();
    let sleuth = papers.prove(Start::serve()).start().await.unwrap();
    let url = format!("https://{}/readyz", sleuth.address("http").unwrap());
    let answer = papers.client(false).get(&url).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert!(reqwest::get(&url).await.is_err(), "its authority is not known to this machine");
    assert!(reqwest::get(sleuth.url("/readyz").unwrap()).await.is_err(), "nothing is said in the clear");

    let listed = models(&sleuth, |start| papers.trust(start)).await.unwrap();
    assert!(listed.contains("builtin/triage"), "{listed}");
    let stranger = Papers::issue();
    models(&sleuth, |start| stranger.trust(start)).await.unwrap_err();
}

#[tokio::test]
async fn a_server_can_ask_who_its_clients_are() {
    let (papers, stranger) = (Papers::issue(), Papers::issue());
    let start = papers.prove(Start::serve()).env("SLEUTH_TLS_CLIENT_CA", papers.file("ca.pem"));
    let sleuth = start.start().await.unwrap();
    let url = format!("https://{}/readyz", sleuth.address("http").unwrap());
    assert_eq!(papers.client(true).get(&url).send().await.unwrap().status(), 200);
    assert!(papers.client(false).get(&url).send().await.is_err());

    models(&sleuth, |start| papers.prove(papers.trust(start))).await.unwrap();
    models(&sleuth, |start| papers.trust(start)).await.unwrap_err();
    models(&sleuth, |start| stranger.prove(papers.trust(start))).await.unwrap_err();
}

#[tokio::test]
async fn services_apart_prove_themselves_to_each_other() {
    let papers = Papers::issue();
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
    let ready = papers.client(true).get(&url).send().await.unwrap();
    assert_eq!(ready.status(), 200, "{}", ready.text().await.unwrap());
}

#[tokio::test]
async fn an_executor_beyond_loopback_wants_to_know_who_comes() {
    let papers = Papers::issue();
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
    assert_eq!(papers.client(true).get(&url).send().await.unwrap().status(), 200);

    let executor = beyond().env("SLEUTH_API_KEY", "k-of-executors").start().await.unwrap();
    let mut client =
        ToolExecutorClient::connect(format!("http://127.0.0.1:{}", port(&executor))).await.unwrap();
    let refused = client.list_tools(ListToolsRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unauthenticated);
    let mut with_key = tonic::Request::new(ListToolsRequest::default());
    with_key.metadata_mut().insert("authorization", "Bearer k-of-executors".parse().unwrap());
    client.list_tools(with_key).await.unwrap();
}
