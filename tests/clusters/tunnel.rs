//! What holds for calls on a direct connection holds for calls through a link: they are cancelled, end at their time, and
//! leave room for each other.

use std::fs;

use futures_util::future::join_all;
use harness::process::Sleuth;
use serde_json::json;
use wire::agent::{CancelRunRequest, ToolStatus};

use crate::{
    following, result, until_waiting, waiting,
    world::{Bench, SOON, TICK, question},
};

async fn until_nothing_waits(executor: &Sleuth) {
    let reached = async {
        while waiting(executor) != 0 {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap();
}

#[tokio::test]
async fn a_command_behind_a_link_ends_when_its_run_is_cancelled_or_its_reader_has_left() {
    let mut bench = Bench::start(&["--disconnect-grace", "0"]).await;
    let executor = bench.connect(&["eu"]).await.remove(0);
    let asked = question(&[following(&bench.file)], "eu");
    let answer = bench.agent.chat(asked.clone()).await.unwrap();
    let run_id = answer.metadata().get(wire::RUN_ID).unwrap().to_str().unwrap().to_owned();
    until_waiting(&executor).await;
    let cancel = CancelRunRequest { run_id, reason: "enough".to_owned(), ..CancelRunRequest::default() };
    bench.agent.cancel_run(cancel).await.unwrap();
    until_nothing_waits(&executor).await;
    drop(answer);

    let answer = bench.agent.chat(asked).await.unwrap();
    until_waiting(&executor).await;
    drop(answer);
    until_nothing_waits(&executor).await;
}

#[tokio::test]
async fn a_command_behind_a_link_ends_at_its_time() {
    let mut bench = Bench::start(&[]).await;
    let executor = bench.connect(&["eu"]).await.remove(0);
    let mut command = following(&bench.file);
    command["timeout"] = 1.into();
    let run = bench.agent.chat(question(&[command], "eu")).await.unwrap().into_inner();
    let ended = result(run).await;
    assert_eq!(ended.status(), ToolStatus::Error, "{ended:?}");
    assert!(ended.error.contains("timed out after 1 seconds"), "{ended:?}");
    until_nothing_waits(&executor).await;
}

#[tokio::test]
async fn what_prints_much_and_what_prints_little_share_a_link() {
    let mut bench = Bench::start(&[]).await;
    let _executor = bench.connect(&["eu"]).await;
    let numbers = bench.folder().join("numbers");
    let lines = (0..2_000_000).map(|number| format!("{number}\n"));
    fs::write(&numbers, lines.collect::<String>()).unwrap();
    let much = json!({ "command": format!("cat {}", numbers.display()) });
    let calls = (0..12).map(|number| {
        let little = json!({ "command": "printenv WHERE" });
        let asked = question(&[if number % 3 == 0 { much.clone() } else { little }], "eu");
        let mut agent = bench.agent.clone();
        async move { (number, result(agent.chat(asked).await.unwrap().into_inner()).await) }
    });
    for (number, ended) in join_all(calls).await {
        assert_eq!(ended.status(), ToolStatus::Success, "{number}: {}", ended.error);
        let expected = if number % 3 == 0 { "cat " } else { "at-eu" };
        assert!(ended.data.contains(expected), "{number}");
    }
}
