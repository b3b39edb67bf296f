//! Several executors of one agent: they share the work, one may die, and one may come back.

#![cfg(test)]

#[path = "executors/approvals.rs"]
mod approvals;
#[path = "executors/audience.rs"]
mod audience;
#[path = "executors/between.rs"]
mod between;
#[path = "executors/choice.rs"]
mod choice;
#[path = "executors/fleet.rs"]
mod fleet;
#[path = "executors/load.rs"]
mod load;

use std::{fs, io::Write as _, path::Path, time::Duration};

use fleet::Fleet;
use harness::{
    client::Stream,
    models::ScriptedOpenAi,
    process::{Sleuth, Start, descendants},
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(90);
const TICK: Duration = Duration::from_millis(10);
const CALLS: usize = 4;

async fn executor(folder: &Path, name: &str) -> Sleuth {
    let address = format!("unix:{}", folder.join(name).display());
    let state = folder.join(format!("{name}-state"));
    let start = Start::new(["executor", "--listen", &address]).env("SLEUTH_EXECUTOR_STATE", state);
    start.start().await.unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(SOON, async {
        while !is_so() {
            tokio::time::sleep(TICK).await;
        }
    });
    assert!(waited.await.is_ok(), "{what} did not happen within {SOON:?}");
}

/// Commands that an executor runs now and that wait for a line in a file.
fn waiting(executor: &Sleuth) -> usize {
    let all = descendants(executor.id().unwrap());
    all.iter().filter(|(_, command)| command.starts_with("tail -f") && command.contains("wait-")).count()
}

/// Asks a question whose calls each wait for a line.
async fn ask(gateway: &Sleuth, folder: &Path) -> Stream {
    let calls: Vec<_> = (0..CALLS)
        .map(|call| {
            let file = folder.join(format!("wait-{call}"));
            fs::write(&file, "").unwrap();
            let command = format!("tail -f {} | grep -m 1 done", file.display());
            json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": ["tail"] } })
        })
        .collect();
    let script = json!({ "steps": [calls] });
    let body = json!({ "ask": format!("look FAKE_LLM{script}"), "stream": true });
    Stream::open(&gateway.url("/api/chat").unwrap(), &body).await.unwrap()
}

/// Lets the calls end, and reads what came of them.
async fn end(mut stream: Stream, folder: &Path) -> Vec<Value> {
    let write = async {
        loop {
            for call in 0..CALLS {
                // `tail` notices that nobody listens when it writes once more.
                let file = fs::OpenOptions::new().append(true).open(folder.join(format!("wait-{call}")));
                writeln!(file.unwrap(), "done").unwrap();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let read = async {
        let (mut results, mut last) = (Vec::new(), String::new());
        while let Some(frame) = stream.next().await.unwrap() {
            if frame.event == "tool_calling_result" {
                results.push(frame.data["result"].clone());
            }
            last = frame.event;
        }
        assert_eq!(last, "ai_answer_end");
        results
    };
    tokio::select! {
        results = read => results,
        () = write => unreachable!("it writes until it is told"),
    }
}

#[tokio::test]
async fn executors_share_the_work_of_one_that_dies_and_of_one_that_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let models = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    let (one, other) = (executor(folder, "one").await, executor(folder, "other").await);
    let both = format!("unix:{0}/one, unix:{0}/other", folder.display());
    let agent = Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", &both]);
    let agent = agent.models(&models).unwrap().start().await.unwrap();
    let gateway = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &agent.grpc().unwrap()]);
    let gateway = gateway.start().await.unwrap();

    let stream = ask(&gateway, folder).await;
    until("all calls run, some at each", || {
        waiting(&one) + waiting(&other) == CALLS && waiting(&one) > 0 && waiting(&other) > 0
    })
    .await;
    one.kill().await.unwrap();
    until("what only reads has moved", || waiting(&other) == CALLS).await;
    let results = end(stream, folder).await;
    assert_eq!(results.len(), CALLS);
    assert!(results.iter().all(|result| result["status"] == "success"), "{results:?}");

    let one = executor(folder, "one").await;
    let shared = async {
        loop {
            let stream = ask(&gateway, folder).await;
            until("all calls run", || waiting(&one) + waiting(&other) == CALLS).await;
            let both = waiting(&one) > 0 && waiting(&other) > 0;
            end(stream, folder).await;
            if both {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, shared).await.expect("it is given work again");
}

#[tokio::test]
async fn an_executor_that_is_told_to_end_hands_its_calls_to_the_other() {
    let hurried = |_, start: Start| start.env("SLEUTH_EXECUTOR_DRAIN_TIME", "0");
    let mut fleet = Fleet::start(2, &hurried, |start| start).await;
    let stream = ask(&fleet.gateway, &fleet.path("")).await;
    let waits = |fleet: &Fleet| fleet.executors.iter().map(waiting).sum::<usize>();
    until("all calls run", || waits(&fleet) == CALLS).await;
    let busy = fleet.executors.iter().position(|executor| waiting(executor) > 0).unwrap();
    fleet.executors.remove(busy).stop().await.unwrap();
    until("the other has them", || waits(&fleet) == CALLS).await;
    let results = end(stream, &fleet.path("")).await;
    assert_eq!(results.len(), CALLS);
    assert!(results.iter().all(|result| result["status"] == "success"), "{results:?}");
}
