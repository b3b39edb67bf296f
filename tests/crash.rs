//! An executor that is killed at any moment runs no change twice, and says which outcomes are in doubt.

#![cfg(test)]

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use grants::{Decider, SigningKey, allow, sha256};
use harness::process::{Sleuth, Start};
use serde_json::json;
use wire::executor::{
    AttachRequest, Ending, ExactScope, ExecuteEvent, ExecuteRequest, Finished, PlanRequest, ToolStatus,
    execute_event::Kind, grant::Scope, tool_executor_client::ToolExecutorClient,
};

type Client = ToolExecutorClient<tonic::transport::Channel>;

/// The moments at which the executor is killed, after it was asked to run something.
const SEEDS: std::ops::Range<u64> = 0..24;
const PATIENCE: Duration = Duration::from_secs(90);

struct World {
    key: SigningKey,
    folder: tempfile::TempDir,
}

impl World {
    async fn start(&self) -> (Sleuth, Client) {
        let executor = Start::new(["executor", "--listen", "127.0.0.1:0"])
            .env("SLEUTH_GRANT_KEYS", self.key.public().to_string())
            .env("SLEUTH_EXECUTOR_STATE", self.folder.path().join("state"));
        let executor = executor.start().await.unwrap();
        let url = format!("http://{}", executor.address("address").unwrap());
        let client = Client::connect(url).await.unwrap();
        (executor, client)
    }

    fn mark(&self, seed: u64) -> PathBuf {
        self.folder.path().join(format!("mark-{seed}"))
    }

    /// A change that takes a while, and that shows how often it was begun.
    async fn change(&self, client: &mut Client, seed: u64) -> ExecuteRequest {
        let command = format!("echo begun >> {}; sleep 0.05", self.mark(seed).display());
        let mut request = call(&format!("change-{seed}"), &command);
        let plan = PlanRequest {
            tool: request.tool.clone(),
            arguments_json: request.arguments_json.clone(),
            ..PlanRequest::default()
        };
        let plan = client.plan(plan).await.unwrap().into_inner();
        let scope = Scope::Exact(ExactScope {
            execution_id: request.execution_id.clone(),
            tool: request.tool.clone(),
            arguments_sha256: sha256(&request.arguments_json).into(),
            policy_version: plan.policy_version,
            target: plan.target,
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let by = Decider { account: "", principal: "ada", now: i64::try_from(now).unwrap() };
        request.grant = allow(&self.key, scope, by).into();
        request
    }
}

fn call(id: &str, command: &str) -> ExecuteRequest {
    ExecuteRequest {
        execution_id: id.to_owned(),
        tool: "bash".to_owned(),
        arguments_json: json!({ "command": command }).to_string(),
        ..ExecuteRequest::default()
    }
}

fn begun(mark: &Path) -> usize {
    std::fs::read_to_string(mark).unwrap_or_default().lines().count()
}

/// The end of an execution, unless its executor dies first.
async fn end(mut events: tonic::Streaming<ExecuteEvent>) -> Option<Finished> {
    let end = async {
        while let Some(event) = events.message().await.ok()? {
            if let Some(Kind::Finished(finished)) = event.kind {
                return Some(finished);
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, end).await.unwrap()
}

async fn run(client: &mut Client, request: ExecuteRequest) -> Option<Finished> {
    end(client.execute(request).await.ok()?.into_inner()).await
}

#[tokio::test]
async fn a_killed_executor_runs_no_change_twice_and_says_what_is_in_doubt() {
    let world = World { key: SigningKey::generate().unwrap(), folder: tempfile::tempdir().unwrap() };
    let (mut executor, mut client) = world.start().await;
    let undisturbed = world.change(&mut client, SEEDS.end).await;
    let asked = Instant::now();
    run(&mut client, undisturbed).await.unwrap();
    let usual = asked.elapsed();
    let mut doubtful = 0;
    for seed in SEEDS {
        let change = world.change(&mut client, seed).await;
        let read = call(&format!("read-{seed}"), "echo read; sleep 0.05");
        let mut other = client.clone();
        let moment = usual.mul_f64(1.25 * fastrand::Rng::with_seed(seed).f64());
        let (first, first_read, killed) =
            tokio::join!(run(&mut client, change.clone()), run(&mut other, read.clone()), async {
                tokio::time::sleep(moment).await;
                executor.kill().await
            });
        killed.unwrap();
        (executor, client) = world.start().await;

        let again = run(&mut client, change.clone()).await.unwrap();
        let attach = AttachRequest { execution_id: change.execution_id, ..AttachRequest::default() };
        let attached = end(client.attach(attach).await.unwrap().into_inner()).await.unwrap();
        assert_eq!((attached.ending, &attached.error), (again.ending, &again.error), "{seed}");
        match (first, again.ending()) {
            // It had ended in time, and nothing runs again.
            (Some(first), ending) if first.status() == ToolStatus::Success => {
                assert!(again.error.contains("was not run again"), "{seed}: {}", again.error);
                assert!(matches!(ending, Ending::Exited | Ending::Unknown));
            }
            (_, Ending::Unknown) => {
                assert!(again.error.contains("Outcome unknown"), "{seed}: {}", again.error);
                doubtful += 1;
            }
            // It had not begun: it runs now, or its permission was used up and nothing runs.
            (_, Ending::Exited) => assert_eq!(begun(&world.mark(seed)), 1, "{seed}: {}", again.error),
            (_, ending) => {
                assert_eq!(
                    (ending, begun(&world.mark(seed))),
                    (Ending::Refused, 0),
                    "{seed}: {}",
                    again.error
                );
                assert!(again.error.contains("used up"), "{seed}: {}", again.error);
            }
        }
        let read_again = run(&mut client, read).await.unwrap();
        assert_eq!(read_again.status(), ToolStatus::Success, "{seed}: {first_read:?}");
    }
    executor.stop().await.unwrap();
    let most = SEEDS.map(|seed| begun(&world.mark(seed))).max();
    assert_eq!(most, Some(1));
    assert!(doubtful > 0, "no kill hit a change while it ran");
}
