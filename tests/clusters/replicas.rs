//! Several executors of one cluster: replicas of each other.

use harness::process::{Sleuth, Start};
use tokio::time::timeout;
use wire::agent::{ListClustersRequest, ToolStatus};

use crate::{
    following, result, until_waiting, waiting,
    world::{Bench, SOON, TICK, key, question, say_done},
};

/// One more executor of a cluster, with a token of its own.
async fn another(bench: &Bench, cluster: &str) -> Sleuth {
    let token = key(&bench.hub, &[cluster], true).await;
    let url = bench.hub.grpc().unwrap();
    let start = Start::new(["executor", "--connect", &url, "--cluster", cluster, "--name", "two"]);
    let start = start.env("SLEUTH_EXECUTOR_STATE", bench.folder().join("state-two"));
    start.env("SLEUTH_JOIN_TOKEN", token).start().await.unwrap()
}

async fn until_both_are_connected(bench: &mut Bench) {
    let reached = async {
        loop {
            let listed = bench.agent.list_clusters(ListClustersRequest { caller: None }).await.unwrap();
            let clusters = listed.into_inner().clusters;
            if clusters.len() == 1 && clusters[0].executors.len() == 2 {
                return;
            }
            tokio::time::sleep(TICK).await;
        }
    };
    timeout(SOON, reached).await.unwrap();
}

/// The one that a call is at, and the other one.
async fn at_work(one: Sleuth, two: Sleuth) -> (Sleuth, Sleuth) {
    let begun = async {
        loop {
            match (waiting(&one), waiting(&two)) {
                (0, 0) => tokio::time::sleep(TICK).await,
                (0, _) => return false,
                _ => return true,
            }
        }
    };
    if timeout(SOON, begun).await.unwrap() { (one, two) } else { (two, one) }
}

#[tokio::test]
async fn what_only_reads_begins_again_at_another_executor_of_its_cluster() {
    let mut bench = Bench::start(&[]).await;
    let one = bench.connect(&["eu"]).await.remove(0);
    let two = another(&bench, "eu").await;
    until_both_are_connected(&mut bench).await;
    let run = bench.agent.chat(question(&[following(&bench.file)], "eu")).await.unwrap().into_inner();
    let (lost, other) = at_work(one, two).await;
    lost.kill().await.unwrap();
    until_waiting(&other).await;
    let ended = tokio::select! {
        ended = result(run) => ended,
        () = say_done(&bench.file) => unreachable!("it writes until it is told"),
    };
    assert_eq!(ended.status(), ToolStatus::Success, "{ended:?}");
}
