//! Keys of clusters: renewed while their link stays, shared by the executors of a cluster, and ended.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use harness::process::{Sleuth, Start};
use tonic::Code;
use wire::{
    account::{RevokeKeyRequest, accounts_client::AccountsClient},
    agent::{ListClustersRequest, ToolStatus},
    cluster::{RenewRequest, cluster_link_client::ClusterLinkClient},
};

use crate::{
    following, result, until_waiting, waiting,
    world::{Bench, SOON, TICK, executor, free_port, key, question, say_done, until_connected},
};

/// An executor that has no token, but perhaps the key of another one in the folder.
async fn sharing(folder: &Path, hub: &Sleuth, name: &str) -> Sleuth {
    let url = hub.grpc().unwrap();
    let start = Start::new(["executor", "--connect", &url, "--cluster", "eu", "--name", name]);
    start.env("SLEUTH_EXECUTOR_STATE", folder.join("state-eu")).start().await.unwrap()
}

async fn until(mut reached: impl AsyncFnMut() -> bool) {
    let waits = async {
        while !reached().await {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(SOON, waits).await.unwrap();
}

#[tokio::test]
async fn a_key_is_renewed_while_the_link_stays_and_all_executors_of_the_cluster_have_it() {
    let mut bench = Bench::start(&[]).await;
    let first = bench.connect(&["eu"]).await.remove(0);
    let folder = bench.folder().to_owned();
    let Bench { hub, agent, file, .. } = &mut bench;
    let kept = folder.join("state-eu/cluster.key");
    let read = || fs::read_to_string(&kept).unwrap();
    let old = read();
    first.stop().await.unwrap();

    // It has not been renewed for two days.
    let long_ago = SystemTime::now() - Duration::from_secs(48 * 3600);
    fs::File::options().write(true).open(&kept).unwrap().set_modified(long_ago).unwrap();
    let again = sharing(&folder, hub, "one").await;
    until_connected(agent, &["eu"]).await;
    let run = agent.chat(question(&[following(file)], "eu")).await.unwrap().into_inner();
    until_waiting(&again).await;
    until(async || read() != old).await;
    let links = again.log().iter().filter(|line| line.contains("linked to the agent")).count();
    assert_eq!((links, waiting(&again)), (1, 1), "the link and what it carries stay");
    let ended = tokio::select! {
        ended = result(run) => ended,
        () = say_done(file) => unreachable!("it writes until it is told"),
    };
    assert_eq!(ended.status(), ToolStatus::Success, "{ended:?}");

    // The fresh one is good for others, too, and when it is ended, so are the old one and all links.
    let _other = sharing(&folder, hub, "two").await;
    let executors = async |agent: &mut wire::agent::agent_client::AgentClient<_>| {
        let listed = agent.list_clusters(ListClustersRequest { caller: None }).await.unwrap().into_inner();
        listed.clusters.first().map_or(0, |cluster| cluster.executors.len())
    };
    until(async || executors(agent).await == 2).await;
    let fresh = read();
    let id = fresh.split('_').nth(1).unwrap().to_owned();
    let mut accounts = AccountsClient::connect(hub.grpc().unwrap()).await.unwrap();
    accounts.revoke_key(RevokeKeyRequest { id }).await.unwrap();
    until_connected(agent, &[]).await;
    let mut links = ClusterLinkClient::connect(hub.grpc().unwrap()).await.unwrap();
    for ended in [fresh, old] {
        let mut renewal = tonic::Request::new(RenewRequest {});
        renewal.metadata_mut().insert("authorization", format!("Bearer {ended}").parse().unwrap());
        let refused = links.renew(renewal).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    }
}

async fn revoke(hub: &Sleuth, key: &str) {
    let id = key.split('_').nth(1).unwrap().to_owned();
    let mut accounts = AccountsClient::connect(hub.grpc().unwrap()).await.unwrap();
    accounts.revoke_key(RevokeKeyRequest { id }).await.unwrap();
}

#[tokio::test]
async fn a_new_token_counts_where_the_kept_key_does_not() {
    let mut bench = Bench::start(&[]).await;
    let first = bench.connect(&["eu"]).await.remove(0);
    let folder = bench.folder().to_owned();
    let read = || fs::read_to_string(folder.join("state-eu/cluster.key")).unwrap();
    let old = read();
    first.stop().await.unwrap();
    until_connected(&mut bench.agent, &[]).await;

    // It is not touched while the key counts, and is used when that ends.
    let token = key(&bench.hub, &["eu"], true).await;
    let again = executor(&folder, bench.grpc(), "eu", &token).await;
    until_connected(&mut bench.agent, &["eu"]).await;
    assert_eq!(read(), old);
    revoke(&bench.hub, &old).await;
    until(async || read() != old).await;
    until_connected(&mut bench.agent, &["eu"]).await;

    // Without a token that counts there is no way back, until it is started with one.
    again.stop().await.unwrap();
    let fresh = read();
    revoke(&bench.hub, &fresh).await;
    let refused = executor(&folder, bench.grpc(), "eu", &token).await;
    until(async || refused.log().iter().any(|line| line.contains("set another --join-token"))).await;
    assert_eq!(read(), fresh);
    refused.stop().await.unwrap();
    let token = key(&bench.hub, &["eu"], true).await;
    let _last = executor(&folder, bench.grpc(), "eu", &token).await;
    until_connected(&mut bench.agent, &["eu"]).await;
}

#[tokio::test]
async fn a_token_replaces_the_key_of_another_cluster_wherever_an_agent_answers() {
    let mut bench = Bench::start(&[]).await;
    let eu = bench.connect(&["eu"]).await.remove(0);
    eu.stop().await.unwrap();
    until_connected(&mut bench.agent, &[]).await;

    let folder = bench.folder().to_owned();
    let (away, hub) = (format!("http://127.0.0.1:{}", free_port().await), bench.hub.grpc().unwrap());
    let dial = |state: &str, token: String| {
        let start = Start::new(["executor", "--connect", &format!("{away},{hub}"), "--cluster", "us"]);
        start.env("SLEUTH_EXECUTOR_STATE", folder.join(state)).env("SLEUTH_JOIN_TOKEN", token)
    };
    let other = dial("state-new", key(&bench.hub, &["asia"], true).await).start().await.unwrap_err();
    assert!(other.to_string().contains("the token is that of cluster `asia`"), "{other}");
    for state in ["state-new", "state-eu"] {
        let us = dial(state, key(&bench.hub, &["us"], true).await).start().await.unwrap();
        until_connected(&mut bench.agent, &["us"]).await;
        us.stop().await.unwrap();
        until_connected(&mut bench.agent, &[]).await;
    }
}
