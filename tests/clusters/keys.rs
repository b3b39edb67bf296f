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
    world::{Bench, SOON, TICK, question, say_done, until_connected},
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
