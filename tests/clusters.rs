//! Clusters that dial out: they join once, answer questions, and come back with what they run when a link is cut.

#![cfg(test)]

#[path = "clusters/codes.rs"]
mod codes;
#[path = "clusters/files.rs"]
mod files;
#[path = "clusters/hubs.rs"]
mod hubs;
#[path = "clusters/keys.rs"]
mod keys;
#[path = "clusters/namespace.rs"]
mod namespace;
#[path = "clusters/namespaces.rs"]
mod namespaces;
#[path = "clusters/replicas.rs"]
mod replicas;
#[path = "clusters/resumes.rs"]
mod resumes;
#[path = "clusters/teams.rs"]
mod teams;
#[path = "clusters/tunnel.rs"]
mod tunnel;
#[path = "clusters/world.rs"]
mod world;

use std::path::Path;

use harness::{
    link::Link,
    models::Script,
    process::{Sleuth, Start, descendants},
};
use serde_json::{Value, json};
use tonic::{Code, Request};
use wire::{
    account::{UpdateAccountRequest, accounts_client::AccountsClient},
    agent::{ChatRequest, Event, ToolResult, ToolStatus, event::Kind},
    cluster::{JoinRequest, cluster_link_client::ClusterLinkClient},
};
use world::{Bench, SOON, TICK, events, executor, key, question, say_done, until_connected};

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

fn following(file: &Path) -> Value {
    json!({ "command": format!("tail -f {} | grep -m 1 done", file.display()) })
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

#[tokio::test]
async fn a_cluster_dials_out_and_comes_back_with_what_it_runs() {
    let mut bench = Bench::start(&[]).await;
    let nobody = bench.agent.chat(question(&[following(&bench.file)], "prod")).await.unwrap_err();
    assert_eq!(nobody.code(), Code::NotFound, "{nobody:?}");
    assert!(nobody.message().contains("connected are: none"), "{nobody:?}");

    let link = Link::to([bench.grpc()]).await.unwrap();
    let token = key(&bench.hub, &["prod"], true).await;
    let executor = executor(bench.folder(), link.address(), "prod", &token).await;
    until_connected(&mut bench.agent, &["prod"]).await;
    let mut links = ClusterLinkClient::connect(bench.hub.grpc().unwrap()).await.unwrap();
    let again = links.join(JoinRequest { token: token.clone() }).await.unwrap_err();
    assert_eq!(again.code(), Code::Unauthenticated, "a token counts once");

    let events = bench.agent.chat(question(&[following(&bench.file)], "prod")).await.unwrap().into_inner();
    until_waiting(&executor).await;
    link.aim([]);
    link.cut();
    until_connected(&mut bench.agent, &[]).await;
    assert_eq!(waiting(&executor), 1, "it goes on while nobody can see it");
    link.aim([bench.grpc()]);
    until_connected(&mut bench.agent, &["prod"]).await;
    assert_eq!(waiting(&executor), 1, "and it is not begun again");
    let ended = tokio::select! {
        ended = result(events) => ended,
        () = say_done(&bench.file) => unreachable!("it writes until it is told"),
    };
    assert_eq!(ended.status(), ToolStatus::Success, "{ended:?}");

    executor.stop().await.unwrap();
    until_connected(&mut bench.agent, &[]).await;
    let executor = self::executor(bench.folder(), link.address(), "prod", &token).await;
    until_connected(&mut bench.agent, &["prod"]).await;
    assert!(executor.id().is_some(), "the key that it kept counts, not the token that is used up");
}

/// Where each call ran, and what it printed or why it did not run.
fn calls(events: &[Event]) -> Vec<(String, String)> {
    let at = |id: &str| {
        let found = events.iter().find_map(|event| match &event.kind {
            Some(Kind::ToolStarted(started)) if started.call.as_ref().is_some_and(|call| call.id == id) => {
                Some(started.cluster.clone())
            }
            _ => None,
        });
        found.unwrap_or_default()
    };
    let ended = events.iter().filter_map(|event| match &event.kind {
        Some(Kind::ToolFinished(finished)) => {
            Some((&finished.call_id, finished.result.clone().unwrap_or_default()))
        }
        _ => None,
    });
    ended
        .map(|(id, result)| {
            let text = if result.error.is_empty() { result.data } else { result.error };
            (at(id), text.lines().last().unwrap_or_default().to_owned())
        })
        .collect()
}

#[tokio::test]
async fn a_question_looks_at_several_clusters_and_a_key_at_its_own() {
    let mut bench = Bench::start(&[]).await;
    let _executors = bench.connect(&["eu", "us"]).await;
    let Bench { openai, hub, agent, .. } = &mut bench;

    let at = |cluster: &str| json!({ "command": "printenv WHERE", "cluster": cluster });
    let asked = question(&[at("us"), at("eu"), at("local"), json!({ "command": "printenv WHERE" })], "");
    let run = events(agent.chat(asked.clone()).await.unwrap().into_inner()).await;
    let seen = calls(&run);
    assert_eq!(seen[0], ("us".to_owned(), "at-us".to_owned()));
    assert_eq!(seen[1], ("eu".to_owned(), "at-eu".to_owned()));
    assert!(seen[2].0.is_empty() && seen[2].1.contains("There is no cluster `local`"), "{seen:?}");
    assert!(seen[3].1.contains("must be one of `eu`, `us`"), "{seen:?}");
    let told = &openai.requests()[0].body;
    let bash =
        told["tools"].as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "bash").unwrap();
    let parameters = &bash["function"]["parameters"];
    assert_eq!(parameters["properties"]["cluster"]["enum"], json!(["eu", "us"]));
    assert!(parameters["required"].as_array().unwrap().contains(&json!("cluster")), "{parameters}");
    assert!(told["messages"][0].to_string().contains("several Kubernetes clusters: `eu`, `us`"));

    // A key for one cluster has no choice, and whatever it says goes there.
    let bearer = format!("Bearer {}", key(hub, &["eu"], false).await);
    let with_key = |asked: ChatRequest| {
        let mut request = Request::new(asked);
        request.metadata_mut().insert("authorization", bearer.parse().unwrap());
        request
    };
    let run = events(agent.chat(with_key(asked.clone())).await.unwrap().into_inner()).await;
    let seen = calls(&run);
    assert!(seen.iter().all(|(cluster, _)| cluster == "eu"), "{seen:?}");
    assert!(seen.iter().all(|(_, text)| text == "at-eu" || text.contains("cluster")), "{seen:?}");
    let named = agent.chat(with_key(ChatRequest { cluster: "us".to_owned(), ..asked })).await.unwrap_err();
    assert_eq!(named.code(), Code::PermissionDenied, "{named:?}");
}

#[tokio::test]
async fn a_model_may_only_choose_among_the_connected_clusters() {
    let mut bench = Bench::start(&[]).await;
    let _executors = bench.connect(&["eu", "us"]).await;
    let Bench { openai, hub, .. } = &bench;
    let gateway = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &hub.grpc().unwrap()]);
    let gateway = gateway.start().await.unwrap();
    let url = gateway.url("/api/holmes/default/chat").unwrap();
    let ask = async |question: &str| {
        let body = json!({ "ask": question, "payload": { "pod": "web-1" } });
        let answer = reqwest::Client::new().post(&url).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    for (question, said, expected) in [
        ("Why is checkout slow?", "us", Ok("us")),
        ("Why is checkout slow?", "`eu`.", Ok("eu")),
        ("Why is checkout slow on eu?", "us", Ok("eu")),
        ("Why is checkout slow?", "none", Err("eu, us")),
        ("Why is checkout slow?", "mars", Err("eu, us")),
        ("Why is checkout slow?", "us or eu", Err("eu, us")),
    ] {
        openai.say_by_default(Script { answer: said.into(), ..Script::default() });
        let (status, answer) = ask(question).await;
        match expected {
            Ok(cluster) => {
                assert_eq!((status, &answer["cluster_id"]), (200, &json!(cluster)), "{said}: {answer}");
            }
            Err(listed) => {
                assert_eq!(
                    (status, &answer["error_code"]),
                    (400, &json!("CLUSTER_ERROR")),
                    "{said}: {answer}"
                );
                assert!(answer["msg"].as_str().unwrap().contains(listed), "{answer}");
            }
        }
    }

    // An account that has nothing left to spend is not asked about either.
    let mut accounts = AccountsClient::connect(hub.grpc().unwrap()).await.unwrap();
    let nothing = UpdateAccountRequest {
        id: "default".to_owned(),
        daily_tokens: Some(1),
        ..UpdateAccountRequest::default()
    };
    accounts.update_account(nothing).await.unwrap();
    let before = openai.requests().len();
    let (status, answer) = ask("Why is checkout slow?").await;
    assert_eq!((status, openai.requests().len()), (429, before), "{answer}");
}
