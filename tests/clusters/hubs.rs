//! Several hubs: each reaches the clusters of all, and what a cluster runs survives the way to it.

use std::{fs, path::Path};

use harness::{link::Link, models::ScriptedOpenAi, postgres::Postgres, process::Sleuth};
use serde_json::json;
use tonic::{Code, Request};
use wire::{
    agent::{ListClustersRequest, ToolStatus},
    executor::{ListToolsRequest, tool_executor_client::ToolExecutorClient},
};

use crate::{
    calls, following, result, until_waiting, waiting,
    world::{SOON, TICK, agent, events, executor, free_port, hub, key, question, say_done, until_connected},
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

#[tokio::test]
async fn a_link_is_replaced_before_it_is_old_and_nothing_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, file) = (folder.path(), folder.path().join("file"));
    fs::write(&file, "").unwrap();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let hub = hub(&openai, &["--link-seconds", "2"]).await;
    let link = Link::to([hub.address("grpc").unwrap()]).await.unwrap();
    let executor = joined(folder, &hub, &link, "eu").await;
    let mut agent = agent(&hub).await;
    until_connected(&mut agent, &["eu"]).await;
    let run = agent.chat(question(&[following(&file)], "")).await.unwrap().into_inner();
    until_waiting(&executor).await;
    until_logged(&hub, "an executor of a cluster is connected", 4).await;
    until_connected(&mut agent, &["eu"]).await;
    assert_eq!(waiting(&executor), 1);
    assert!(
        !executor.log().iter().any(|line| line.contains("has ended and is made again")),
        "{:?}",
        executor.log()
    );
    let ended = tokio::select! {
        ended = result(run) => ended,
        () = say_done(&file) => unreachable!("it writes until it is told"),
    };
    assert_eq!(ended.status(), ToolStatus::Success, "{ended:?}");
}
