//! Each way in which an execution can end that needs something to go wrong.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]
#![expect(dead_code, reason = "not every test needs all of the rig")]

mod rig;

use std::{
    os::unix::fs::PermissionsExt as _,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use executor::Config;
use grants::{Decider, KeyRing, SigningKey, allow, sha256};
use harness::process::{descendants, signal};
use rig::{Rig, bash, config, finished, processes_with, rest, unique, until};
use wire::executor::{
    CancelRequest, Clock, Ending, ExactScope, ExecuteRequest, Finished, PlanRequest, ToolStatus,
    execute_event::Kind, grant::Scope,
};

/// A command that a person has allowed, whatever it is.
async fn allowed(rig: &mut Rig, key: &SigningKey, command: &str) -> ExecuteRequest {
    let mut request = bash(&unique(), command);
    let plan = PlanRequest {
        tool: request.tool.clone(),
        arguments_json: request.arguments_json.clone(),
        ..PlanRequest::default()
    };
    let plan = rig.client.plan(plan).await.unwrap().into_inner();
    let scope = Scope::Exact(ExactScope {
        execution_id: request.execution_id.clone(),
        tool: request.tool.clone(),
        arguments_sha256: sha256(&request.arguments_json).into(),
        policy_version: plan.policy_version,
        target: plan.target,
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap();
    request.grant = allow(key, scope, Decider { account: "", principal: "ada", now }).into();
    request
}

/// An executor that trusts a key.
async fn trusting(mut config: Config) -> (Rig, SigningKey) {
    let key = SigningKey::generate().unwrap();
    config.grant_keys = KeyRing::parse(&key.public().to_string()).unwrap();
    (Box::pin(Rig::with(config)).await, key)
}

/// Runs something until it prints, kills what holds the process with this mark, and reads the end.
async fn lost(rig: &mut Rig, request: ExecuteRequest, mark: &str) -> Finished {
    let mut events = rig.execute(request).await.unwrap();
    until(&mut events, |event| matches!(event.kind, Some(Kind::Output(_))).then_some(())).await;
    let holds = |process: u32| descendants(process).iter().any(|(_, command)| command.contains(mark));
    let all = descendants(std::process::id());
    let (launcher, _) = all.into_iter().find(|(process, _)| holds(*process)).expect("what holds it");
    signal(launcher, "KILL").await.unwrap();
    finished(&rest(events).await)
}

#[tokio::test]
async fn one_that_a_signal_ended_says_so() {
    let (mut rig, key) = trusting(config()).await;
    let request = allowed(&mut rig, &key, "echo up; kill -KILL $$").await;
    let end = finished(&rest(rig.execute(request).await.unwrap()).await);
    assert_eq!((end.status(), end.ending(), end.exit_code), (ToolStatus::Error, Ending::Signalled, None));
    assert!(end.data.ends_with("up"), "{end:?}");
}

#[tokio::test]
async fn one_that_only_reads_is_lost_and_may_run_again() {
    let mut rig = Rig::new().await;
    let mark = unique();
    let read = bash(&unique(), &format!("echo up; tail -f /dev/null | grep {mark}"));
    let end = lost(&mut rig, read, &mark).await;
    assert_eq!((end.status(), end.ending()), (ToolStatus::Error, Ending::Lost), "{end:?}");
    assert!(end.error.contains("how it ended is not known"), "{}", end.error);
    assert_eq!(rig.bash("echo more").await.ending(), Ending::Exited);
}

#[tokio::test]
async fn one_that_may_have_changed_something_is_in_doubt_and_never_runs_again() {
    let (mut rig, key) = trusting(config()).await;
    let folder = tempfile::tempdir().unwrap();
    let (file, mark) = (folder.path().join("mark"), unique());
    let command = format!("echo ran >> {}; echo up; tail -f /dev/null | grep {mark}", file.display());
    let request = allowed(&mut rig, &key, &command).await;
    let end = lost(&mut rig, request.clone(), &mark).await;
    assert_eq!((end.status(), end.ending()), (ToolStatus::Error, Ending::Unknown), "{end:?}");
    assert!(end.error.contains("Outcome unknown"), "{}", end.error);
    let again = finished(&rest(rig.execute(request).await.unwrap()).await);
    assert_eq!(again.ending(), Ending::Unknown);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "ran\n");
}

#[tokio::test]
async fn one_that_takes_all_memory_is_told_apart() {
    let set = |name: &str| match name {
        "SLEUTH_SANDBOX_MEMORY_MB" => Some("64".to_owned()),
        _ => std::env::var(name).ok(),
    };
    let (usual, mut narrow) = (config(), Config::from_env(&set).unwrap());
    (narrow.launcher, narrow.state) = (usual.launcher, usual.state);
    let (mut rig, key) = trusting(narrow).await;
    let greedy = "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c";
    for request in [bash(&unique(), greedy), allowed(&mut rig, &key, &format!("true; {greedy} >&2")).await] {
        let end = finished(&rest(rig.execute(request).await.unwrap()).await);
        if !end.sandbox_layers.iter().any(|layer| layer == "cgroup") {
            println!("skipped: no control groups here");
            continue;
        }
        assert_eq!((end.status(), end.ending()), (ToolStatus::Error, Ending::OutOfMemory), "{end:?}");
    }
}

/// The launcher becomes one that is too slow.
#[tokio::test]
async fn one_that_cannot_be_started_in_time_says_so_and_has_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let (launcher, mark) = (folder.path().join("launch"), folder.path().join("mark"));
    let write = |text: &str| {
        let new = folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::rename(&new, &launcher).unwrap();
    };
    let start = format!("exec {} \"$@\"\n", env!("CARGO_BIN_EXE_sleuth-launch"));
    write(&format!("#!/bin/sh\n{start}"));
    let mut own = config();
    own.launcher = launcher.clone();
    own.start_time = Duration::from_secs(10);
    let (mut rig, key) = trusting(own).await;
    let wait = format!("sleep 11.000{}", std::process::id());
    write(&format!("#!/bin/sh\n{wait}\n{start}"));
    let mut running = Vec::new();
    let change = allowed(&mut rig, &key, &format!("touch {}", mark.display())).await;
    for call in [bash(&unique(), "echo up"), bash(&unique(), "kubectl get pods"), change] {
        running.push(rig.execute(call).await.unwrap());
    }
    for events in running {
        let end = finished(&rest(events).await);
        assert_eq!((end.ending(), end.clock()), (Ending::TimedOut, Clock::Start), "{end:?}");
        assert!(end.error.contains("did not start in 10 seconds"), "{end:?}");
    }
    let gone = async {
        while !processes_with(&wait).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("none of it is left");
    assert!(!mark.exists());
}

/// What is cancelled while its launcher is slow has not run either.
#[tokio::test]
async fn one_that_is_cancelled_before_it_starts_never_does() {
    let folder = tempfile::tempdir().unwrap();
    let (launcher, mark) = (folder.path().join("launch"), folder.path().join("mark"));
    let (asked, go) = (folder.path().join("asked"), folder.path().join("go"));
    let script = format!(
        "#!/bin/sh\nif [ -e {go} ]; then touch {asked}; while [ -e {go} ]; do sleep 0.1; done; fi\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_sleuth-launch"),
        go = go.display(),
        asked = asked.display(),
    );
    std::fs::write(&launcher, script).unwrap();
    std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut own = config();
    own.launcher = launcher.clone();
    let (mut rig, key) = trusting(own).await;
    let change = allowed(&mut rig, &key, &format!("touch {}", mark.display())).await;
    std::fs::write(&go, "").unwrap();
    let events = rig.execute(change.clone()).await.unwrap();
    let begun = async {
        while !asked.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), begun).await.expect("it is being started");
    let cancel = CancelRequest { execution_id: change.execution_id, caller: None };
    rig.client.cancel(cancel).await.unwrap();
    let end = finished(&rest(events).await);
    assert_eq!(end.ending(), Ending::Cancelled, "{end:?}");
    std::fs::remove_file(&go).unwrap();
    assert_eq!(rig.bash("echo up").await.ending(), Ending::Exited);
    assert!(!mark.exists());
}

/// A person allows a change, not to read the credentials of the executor.
#[tokio::test]
async fn what_a_person_allowed_changes_the_machine_and_reads_no_credential() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("kubeconfig"), "apiVersion: v1\nkind: Config\nusers: []\n# mine\n").unwrap();
    let set = |name: &str| match name {
        "KUBECONFIG" => Some(at("kubeconfig").display().to_string()),
        _ => std::env::var(name).ok(),
    };
    let (usual, mut own) = (config(), Config::from_env(&set).unwrap());
    (own.launcher, own.state) = (usual.launcher, usual.state);
    let (mut rig, key) = trusting(own).await;
    for (command, answer) in [
        ("cat PLACE/kubeconfig PLACE/*config >PLACE/copy; echo done | tee PLACE/mark", "done"),
        ("cp PLACE/kubeconfig PLACE/copy; wc -c <PLACE/copy", "0"),
        ("mv PLACE/kubeconfig PLACE/moved; cat PLACE/moved >>PLACE/copy; ls PLACE", "copy"),
        ("cat $KUBECONFIG >>PLACE/copy; echo $?", "0"),
    ] {
        let command = command.replace("PLACE", &folder.path().display().to_string());
        let request = allowed(&mut rig, &key, &command).await;
        let end = finished(&rest(rig.execute(request).await.unwrap()).await);
        assert_eq!(end.ending(), Ending::Exited, "{end:?}");
        assert!(end.sandbox_layers.iter().any(|layer| layer == "landlock"), "{end:?}");
        assert!(end.data.contains(answer), "{command}: {end:?}");
        let copied = std::fs::read_to_string(at("copy")).unwrap_or_default();
        assert!(!copied.contains("# mine"), "{command}: {copied}");
    }
    assert_eq!(std::fs::read_to_string(at("mark")).unwrap(), "done\n");
    assert!(std::fs::read_to_string(at("kubeconfig")).unwrap().contains("# mine"));
}

#[tokio::test]
async fn what_a_person_is_shown_has_no_secret() {
    let (mut rig, _) = trusting(config()).await;
    let request = bash(
        &unique(),
        "deploy --password hunter2 && curl -H 'Authorization: Bearer 3f9a8b7c6d5e4f3a2b1c' x",
    );
    let plan =
        PlanRequest { tool: request.tool, arguments_json: request.arguments_json, ..PlanRequest::default() };
    let plan = rig.client.plan(plan).await.unwrap().into_inner();
    assert!(plan.command.contains("[masked:"), "{plan:?}");
    let shown = format!("{plan:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("3f9a8b7c"), "{shown}");
}
