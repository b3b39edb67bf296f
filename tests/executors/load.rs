//! What an autoscaler needs of an executor: how much it can do, what it does, and how long calls wait.

use std::{fs, io::Write as _};

use serde_json::{Value, json};
use wire::executor::{ExecuteEvent, ExecuteRequest, execute_event::Kind};

use crate::fleet::{Fleet, dial, until};

/// Where an executor serves its metrics.
fn metrics(fleet: &Fleet) -> Option<String> {
    let log = fleet.executors[0].log();
    let records = log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let told = records.into_iter().find(|record| record["message"] == "metrics are served")?;
    Some(format!("http://{}/metrics", told["address"].as_str()?))
}

/// What a metric without labels says.
async fn reading(url: &str, name: &str) -> Option<f64> {
    let text = reqwest::get(url).await.unwrap().text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn an_executor_says_how_busy_it_is() {
    let narrow = |_, start: harness::process::Start| {
        start.arg("--metrics").arg("127.0.0.1:0").env("SLEUTH_EXECUTOR_CONCURRENCY", "1")
    };
    let fleet = Fleet::start(1, &narrow, |start| start).await;
    until("it serves metrics", async || metrics(&fleet).is_some()).await;
    let url = metrics(&fleet).unwrap();
    let says = async |running: f64, waiting: f64| {
        [("running", running), ("waiting", waiting), ("capacity", 1.0)]
            .map(|(name, value)| (name, Some(value)))
            == [
                ("running", reading(&url, "sleuth_executions_running").await),
                ("waiting", reading(&url, "sleuth_executions_waiting").await),
                ("capacity", reading(&url, "sleuth_executions_capacity").await),
            ]
    };
    assert!(says(0.0, 0.0).await);

    let file = fleet.path("wait");
    fs::write(&file, "").unwrap();
    let mut client = dial(&fleet.executors[0]).await;
    let mut streams = Vec::new();
    for id in ["one", "two"] {
        let command = format!("tail -f {} | grep -m 1 done", file.display());
        let request = ExecuteRequest {
            execution_id: id.to_owned(),
            tool: "bash".to_owned(),
            arguments_json: json!({ "command": command }).to_string(),
            ..ExecuteRequest::default()
        };
        streams.push(client.execute(request).await.unwrap().into_inner());
    }
    until("one runs and one waits", async || says(1.0, 1.0).await).await;
    let write = async {
        loop {
            // `tail` notices that nobody listens when it writes once more.
            writeln!(fs::OpenOptions::new().append(true).open(&file).unwrap(), "done").unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let read = async {
        for mut events in streams {
            while let Some(ExecuteEvent { kind, .. }) = events.message().await.unwrap() {
                if let Some(Kind::Finished(end)) = kind {
                    assert_eq!(end.exit_code, Some(0), "{end:?}");
                }
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = write => unreachable!("it writes until it is told"),
    }
    until("nothing is left", async || says(0.0, 0.0).await).await;
    assert_eq!(reading(&url, "sleuth_execution_queue_seconds_count").await, Some(2.0));
    assert!(reading(&url, "sleuth_execution_queue_seconds_sum").await > Some(0.0));
}
