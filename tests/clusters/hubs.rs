//! Several hubs: each reaches the clusters of all, and what a cluster runs survives the way to it.

use std::{fs, path::Path};

use harness::{
    link::Link,
    models::ScriptedOpenAi,
    papers::{Papers, SHARED},
    postgres::Postgres,
    process::{Sleuth, Start},
};
use serde_json::json;
use tonic::{Code, Request};
use wire::{
    agent::{ListClustersRequest, ToolStatus},
    executor::{ListToolsRequest, tool_executor_client::ToolExecutorClient},
};

use crate::{
    calls, following, result, until_waiting, waiting,
    world::{
        Bench, SOON, TICK, agent, events, executor, free_port, hub, key, question, say_done, until_connected,
    },
};

/// A hub that shares a store and says where it is.
async fn sharing(openai: &ScriptedOpenAi, store: &str) -> Sleuth {
    let address = format!("127.0.0.1:{}", free_port().await);
    let url = format!("http://{address}");
    hub(openai, &["--grpc", &address, "--advertise", &url, "--store", store]).await
}

async fn joined(folder: &Path, hub: &Sleuth, by: &Link, cluster: &str) -> Sleuth {
    let token = key(hub, &[cluster], true).await;
    executor(folder, by.address(), cluster, &token).await
}

async fn until_logged(process: &Sleuth, text: &str, times: usize) {
    let reached = async {
        while process.log().iter().filter(|line| line.contains(text)).count() < times {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap();
}

#[tokio::test]
async fn hubs_reach_the_clusters_of_each_other_and_follow_them_when_they_move() {
    let Some(postgres) = Postgres::start().await.unwrap() else {
        return eprintln!("skipped: there is no PostgreSQL");
    };
    let store = postgres.database("hubs").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (folder, file) = (folder.path(), folder.path().join("file"));
    fs::write(&file, "").unwrap();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let (first, second) = (sharing(&openai, &store).await, sharing(&openai, &store).await);
    let [to_first, to_second] = [first.address("grpc").unwrap(), second.address("grpc").unwrap()];
    let (us_link, eu_link) = (Link::to([to_first]).await.unwrap(), Link::to([to_second]).await.unwrap());
    let _us = joined(folder, &first, &us_link, "us").await;
    let eu = joined(folder, &first, &eu_link, "eu").await;
    let (mut at_first, mut at_second) = (agent(&first).await, agent(&second).await);
    until_connected(&mut at_first, &["eu", "us"]).await;
    until_connected(&mut at_second, &["eu", "us"]).await;
    let listed = at_first.list_clusters(ListClustersRequest { caller: None }).await.unwrap().into_inner();
    let through: Vec<_> = listed.clusters.iter().map(|cluster| cluster.executors[0].agent.clone()).collect();
    assert_eq!(through, [second.grpc().unwrap(), String::new()]);

    let at = |cluster: &str| json!({ "command": "printenv WHERE", "cluster": cluster });
    let asked = question(&[at("us"), at("eu")], "");
    for agent in [&mut at_first, &mut at_second] {
        let run = events(agent.chat(asked.clone()).await.unwrap().into_inner()).await;
        let expected = [("us", "at-us"), ("eu", "at-eu")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(calls(&run), expected);
    }

    // The first hub follows a command through the second one, and goes on when the cluster comes to itself.
    let run = at_first.chat(question(&[following(&file)], "eu")).await.unwrap().into_inner();
    until_waiting(&eu).await;
    eu_link.aim([to_first]);
    eu_link.cut();
    until_logged(&first, "an executor of a cluster is connected", 2).await;
    assert_eq!(waiting(&eu), 1, "it was not begun again");
    let ended = tokio::select! {
        ended = result(run) => ended,
        () = say_done(&file) => unreachable!("it writes until it is told"),
    };
    assert_eq!(ended.status(), ToolStatus::Success, "{ended:?}");

    // Nobody else gets through.
    let mut stranger = ToolExecutorClient::connect(second.grpc().unwrap()).await.unwrap();
    let mut asked = Request::new(ListToolsRequest::default());
    for (name, value) in [("sleuth-account", "default"), ("sleuth-cluster", "us"), ("sleuth-executor", "one")]
    {
        asked.metadata_mut().insert(name, value.parse().unwrap());
    }
    let refused = stranger.list_tools(asked).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
}

/// What a command of an operator prints.
async fn told(papers: &Papers, hub: &str, arguments: &[&str]) -> String {
    let start = papers.prove(papers.trust(Start::new(arguments.iter().copied())));
    let output = start.env("SLEUTH_SERVER", hub).command().unwrap().output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// As pods of a Deployment do: one certificate for the name of their Service, and an address each.
#[tokio::test]
async fn hubs_with_one_certificate_for_their_name_reach_each_other_by_address() {
    let Some(postgres) = Postgres::start().await.unwrap() else {
        return eprintln!("skipped: there is no PostgreSQL");
    };
    let store = postgres.database("named").await.unwrap();
    let (folder, papers) = (tempfile::tempdir().unwrap(), Papers::issue().unwrap());
    let openai = ScriptedOpenAi::start().await.unwrap();
    let (mut hubs, mut urls) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let port = free_port().await;
        let models =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
        let start = Start::new(["agent", "--executor", "none", "--advertise-ip", "127.0.0.1"]);
        let start = start.arg("--grpc").arg(format!("127.0.0.1:{port}")).arg("--store").arg(&store);
        let start = start.arg("--advertise").arg(format!("https://{SHARED}:{port}")).models(&models).unwrap();
        let asks = start.arg("--tls-client-ca").arg(papers.file("ca.pem"));
        hubs.push(papers.prove(papers.trust(asks)).start().await.unwrap());
        urls.push(format!("https://127.0.0.1:{port}"));
    }
    let token = told(&papers, &urls[0], &["keys", "create", "--join", "--cluster", "eu"]).await;
    let executor = Start::new(["executor", "--connect", &urls[0], "--cluster", "eu", "--name", "one"]);
    let executor = executor.env("SLEUTH_EXECUTOR_STATE", folder.path()).env("SLEUTH_JOIN_TOKEN", token);
    let _executor = papers.prove(papers.trust(executor)).start().await.unwrap();
    for url in &urls {
        let reached = async {
            while !told(&papers, url, &["clusters"]).await.contains("eu") {
                tokio::time::sleep(TICK).await;
            }
        };
        tokio::time::timeout(SOON, reached).await.unwrap();
        let script = json!({ "rounds": 1, "answer": "found it" });
        let asked = format!("look FAKE_LLM{script}");
        let answer = told(&papers, url, &["ask", "--cluster", "eu", &asked]).await;
        assert!(answer.contains("found it"), "{answer}");
    }
    let through = told(&papers, &urls[1], &["clusters", "--json"]).await;
    assert!(through.contains(&format!("https://{SHARED}:")), "{through}");
}

#[tokio::test]
async fn a_link_is_replaced_before_it_is_old_and_nothing_is_cut() {
    let mut bench = Bench::start(&["--link-seconds", "2"]).await;
    let executor = bench.connect(&["eu"]).await.remove(0);
    let Bench { hub, agent, file, .. } = &mut bench;
    let run = agent.chat(question(&[following(file)], "")).await.unwrap().into_inner();
    until_waiting(&executor).await;
    until_logged(hub, "an executor of a cluster is connected", 4).await;
    until_connected(agent, &["eu"]).await;
    assert_eq!(waiting(&executor), 1);
    assert!(
        !executor.log().iter().any(|line| line.contains("has ended and is made again")),
        "{:?}",
        executor.log()
    );
    let ended = tokio::select! {
        ended = result(run) => ended,
        () = say_done(file) => unreachable!("it writes until it is told"),
    };
    assert_eq!(ended.status(), ToolStatus::Success, "{ended:?}");
}
