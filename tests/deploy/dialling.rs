//! A hub and a cluster that dials it, as the chart starts them: in the clear, and with certificates of everybody.

use std::{fs, time::Duration};

use harness::{models::ScriptedOpenAi, papers::Papers, process::Start};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    chart::{Chart, dialling},
    processes::{KEY, ask, at, of_chart, values},
};

const SOON: Duration = Duration::from_secs(90);

/// What a command of an operator prints.
async fn told(start: Start, server: &str) -> String {
    let start = start.env("SLEUTH_API_KEY", KEY).env("SLEUTH_SERVER", server);
    let output = start.command().unwrap().output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

async fn a_cluster_is_asked_through_the_hub_that_it_dials(papers: Option<Papers>) {
    let Some(chart) = Chart::new() else { return };
    let (openai, folder) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let (mut hub, mut cluster) = (values("hub", &openai), dialling());
    cluster["executor"]["connect"]["joinToken"] = json!({ "existingSecret": "join" });
    let proven = |start: Start| match &papers {
        Some(papers) => papers.prove(papers.trust(start)),
        None => start,
    };
    let (mut scheme, mut client) = ("http", reqwest::Client::new());
    if let Some(papers) = &papers {
        for (own, name) in [("cert.pem", "tls.crt"), ("key.pem", "tls.key"), ("ca.pem", "ca.crt")] {
            fs::copy(papers.file(own), folder.path().join(name)).unwrap();
        }
        let tls = json!({ "certificateSecret": "own", "caSecret": "authority", "clientCertificates": "all" });
        (hub["tls"], cluster["tls"]) = (tls.clone(), tls);
        (scheme, client) = ("https", papers.client(true).unwrap());
    }

    let mut services = of_chart(&chart.render(&hub, None).unwrap(), &folder);
    let agent = services.remove("agent").unwrap().start(&[]).await;
    let url = at(scheme, &agent, "grpc");
    let gateway = services.remove("gateway").unwrap().start(&[("SLEUTH_AGENT", url.clone())]).await;
    let token = told(proven(Start::new(["keys", "create", "--join", "--cluster", "eu"])), &url).await;
    let state = folder.path().join("state").to_str().unwrap().to_owned();
    let mut services = of_chart(&chart.render(&cluster, None).unwrap(), &folder);
    let elsewhere =
        [("SLEUTH_CONNECT", url.clone()), ("SLEUTH_JOIN_TOKEN", token), ("SLEUTH_EXECUTOR_STATE", state)];
    let executor = services.remove("executor").unwrap().start(&elsewhere).await;
    assert!(executor.address("address").is_err(), "nothing is served there but metrics");
    let connected = async {
        while !told(proven(Start::new(["clusters"])), &url).await.contains("eu") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, connected).await.unwrap();

    let (_, answer): (Value, Value) = ask(&client, &at(scheme, &gateway, "http"), "fast-model").await;
    assert_eq!(answer["analysis"], "found", "{answer}");
    assert_eq!(answer["tool_calls"][0]["result"]["status"], "success", "{answer}");
    for service in [&agent, &executor] {
        let metrics = at(scheme, service, "metrics");
        let status = async |path: &str, key: &str| {
            let asked = client.get(format!("{metrics}{path}")).header("x-api-key", key);
            asked.send().await.unwrap().status().as_u16()
        };
        let seen =
            (status("/healthz", "").await, status("/metrics", "").await, status("/metrics", KEY).await);
        assert_eq!(seen, (200, 401, 200));
    }
}

#[tokio::test]
async fn a_cluster_of_the_chart_dials_a_hub_of_the_chart() {
    a_cluster_is_asked_through_the_hub_that_it_dials(None).await;
}

#[tokio::test]
async fn a_cluster_of_the_chart_dials_a_hub_of_the_chart_with_certificates_on_both_sides() {
    a_cluster_is_asked_through_the_hub_that_it_dials(Some(Papers::issue().unwrap())).await;
}
