//! What goes on once the client has left: what reads, and nothing that changes.

use std::{fs, io::Write as _, time::Duration};

use harness::client::Stream;
use serde_json::json;
use wire::agent::{WatchRequest, event::Kind};

use crate::fleet::{Fleet, TICK, bash, places, question, running, until};

/// One executor, whose operator lets `touch` run.
async fn fleet(grace: &str) -> Fleet {
    let agent = |start: harness::process::Start| start.env("SLEUTH_DISCONNECT_GRACE", grace);
    Fleet::start(1, &|_, start| start.env("SLEUTH_BASH_ALLOW", "touch"), agent).await
}

/// Reads a line that is not there yet, and then changes something.
async fn ask(fleet: &Fleet) -> Stream {
    fs::write(fleet.path("line"), "").unwrap();
    let read = format!("tail -f {} | grep -m 1 done", fleet.path("line").display());
    let change = format!("touch {}", fleet.path("mark").display());
    let steps = question(&[vec![bash(&read)], vec![bash(&change)]]);
    let stream = Stream::open(&fleet.chat(), &json!({ "ask": steps, "stream": true })).await.unwrap();
    until("the first call runs", async || running(&fleet.executors[0], "tail -f") > 0).await;
    stream
}

/// Lets the first call end.
async fn go_on(fleet: &Fleet) {
    until("the first call has ended", async || {
        // `tail` notices that nobody listens when it writes once more.
        let mut file = fs::OpenOptions::new().append(true).open(fleet.path("line")).unwrap();
        writeln!(file, "done").unwrap();
        tokio::time::sleep(20 * TICK).await;
        running(&fleet.executors[0], "tail -f") == 0
    })
    .await;
}

#[tokio::test]
async fn without_a_reader_what_reads_ends_and_nothing_that_changes_begins() {
    let fleet = fleet("3").await;
    let mut stream = ask(&fleet).await;
    go_on(&fleet).await;
    let mut last = String::new();
    while let Some(frame) = stream.next().await.unwrap() {
        last = frame.event;
    }
    assert_eq!(last, "ai_answer_end");
    assert!(fleet.path("mark").exists(), "with a reader it changes");
    fs::remove_file(fleet.path("mark")).unwrap();

    let stream = ask(&fleet).await;
    let run = stream.run_id().unwrap();
    drop(stream);
    until("the client is gone", async || fleet.run(&run).await["readers"] == 0).await;
    go_on(&fleet).await;
    until("the run has ended", async || fleet.run(&run).await["state"] == "cancelled").await;
    let events = fleet.events(&run).await;
    let started = events.iter().filter(|event| matches!(event.kind, Some(Kind::ToolStarted(_)))).count();
    assert_eq!((started, places(&events).len()), (2, 1), "the second call went nowhere: {events:?}");
    assert!(!fleet.path("mark").exists());
}

#[tokio::test]
async fn who_comes_back_in_time_finds_the_run_going_on() {
    let fleet = fleet("60").await;
    let stream = ask(&fleet).await;
    let run = stream.run_id().unwrap();
    drop(stream);
    until("the client is gone", async || fleet.run(&run).await["readers"] == 0).await;
    go_on(&fleet).await;
    until("the second call waits", async || fleet.run(&run).await["tool_calls"] == 2).await;
    // Time in which it would begin, if it did not wait.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!fleet.path("mark").exists());

    let request = WatchRequest { run_id: run.clone(), ..WatchRequest::default() };
    let mut events = fleet.grpc().await.watch(request).await.unwrap().into_inner();
    let mut last = None;
    while let Some(event) = events.message().await.unwrap() {
        last = event.kind;
    }
    assert!(matches!(last, Some(Kind::RunFinished(_))), "{last:?}");
    assert!(fleet.path("mark").exists());
}
