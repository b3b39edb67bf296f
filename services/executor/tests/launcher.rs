//! The launcher's promises, over its own protocol: how programs end, and that nothing is left behind.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed step fails the test")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};

/// A launcher with the test as its executor.
struct Launched {
    child: Child,
    control: Option<UnixStream>,
    output: BufReader<ChildStdout>,
}

fn command(control: UnixStream) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sleuth-launch"));
    command.arg(executor::launcher::ARG).stdin(Stdio::from(OwnedFd::from(control)));
    command
}

/// Hands in a job without a confinement, and lets it begin once all is ready for it.
fn tell(control: &mut UnixStream, spec: &Value) {
    writeln!(control, "{{}}\n{spec}").unwrap();
    let mut word = [0];
    control.read_exact(&mut word).unwrap();
    assert_eq!(word, *b"\n");
    control.write_all(&word).unwrap();
}

fn launch(spec: &Value) -> Launched {
    let (mut control, theirs) = UnixStream::pair().unwrap();
    let mut child = command(theirs).stdout(Stdio::piped()).spawn().unwrap();
    tell(&mut control, spec);
    let output = BufReader::new(child.stdout.take().unwrap());
    Launched { child, control: Some(control), output }
}

fn shell(script: &str) -> Launched {
    launch(&json!({"pipeline": [["bash", "-c", script]], "merge_stderr": true}))
}

impl Launched {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it reports when it ends by itself.
    fn report(&mut self) -> Value {
        let mut report = String::new();
        self.control.take().unwrap().read_to_string(&mut report).unwrap();
        serde_json::from_str(&report).unwrap()
    }

    fn output(mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        text
    }
}

/// Waits until nothing holds the other end of a pipe any more.
fn await_end(mut pipe: impl std::io::Read + Send + 'static) {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = pipe.read_to_end(&mut rest);
        let _ = done.send(());
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the pipe to end");
}

/// A daemon in its own session, one that ignores signals, one that is stopped, and a chain of the first kind.
const HARD_TO_KILL: &str = r#"
    (setsid bash -c 'echo daemon; exec sleep 1000' &)
    bash -c 'trap "" TERM INT HUP; echo deaf; while :; do sleep 1000; done' &
    bash -c 'echo stopped; kill -STOP $$' &
    (setsid bash -c '(setsid bash -c "(setsid sleep 1000 &); echo nested; exec sleep 1000" &); exec sleep 1000' &)
    sleep 1000
"#;

fn await_four(launched: &mut Launched) {
    let mut lines: Vec<_> = (0..4).map(|_| launched.line()).collect();
    lines.sort();
    assert_eq!(lines, ["daemon", "deaf", "nested", "stopped"]);
}

#[test]
fn each_way_to_end_is_told_apart() {
    for (pipeline, report) in [
        (json!([["true"]]), json!([{"exited": 0}])),
        (json!([["bash", "-c", "exit 7"]]), json!([{"exited": 7}])),
        (json!([["bash", "-c", "kill -KILL $$"]]), json!([{"signalled": 9}])),
        (json!([["bash", "-c", "exit 3"], ["cat"]]), json!([{"exited": 3}, {"exited": 0}])),
        (json!([["cat", "/dev/zero"], ["head", "-c", "1"]]), json!([{"signalled": 13}, {"exited": 0}])),
    ] {
        let mut launched = launch(&json!({"pipeline": pipeline, "merge_stderr": false}));
        assert_eq!(launched.report(), json!({"exits": report}), "{pipeline}");
    }
    let mut missing = launch(&json!({"pipeline": [["no-such-program"]], "merge_stderr": false}));
    let report = missing.report();
    assert!(report["exits"][0]["not_started"].as_str().unwrap().starts_with("no-such-program: "), "{report}");
}

#[test]
fn nothing_begins_without_the_word() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let (mut control, theirs) = UnixStream::pair().unwrap();
    let mut child = command(theirs).stdout(Stdio::null()).spawn().unwrap();
    writeln!(control, "{{}}\n{}", json!({"pipeline": [["touch", mark]], "merge_stderr": false})).unwrap();
    control.read_exact(&mut [0]).unwrap();
    drop(control);
    child.wait().unwrap();
    assert!(!mark.exists());
}

#[test]
fn a_pipeline_passes_bytes_on() {
    let launched =
        launch(&json!({"pipeline": [["echo", "abc"], ["tr", "a-c", "x-z"]], "merge_stderr": false}));
    assert_eq!(launched.output(), "xyz\n");
}

#[test]
fn what_outlives_the_program_is_gone_before_the_report() {
    let mut launched =
        shell("(setsid bash -c 'echo daemon; exec sleep 1000' &); read -r _ < <(sleep 0.2); exit 4");
    assert_eq!(launched.line(), "daemon");
    assert_eq!(launched.report(), json!({"exits": [{"exited": 4}]}));
    await_end(launched.output);
}

#[test]
fn closing_the_socket_ends_everything() {
    let mut launched = shell(HARD_TO_KILL);
    await_four(&mut launched);
    launched.control = None;
    await_end(launched.output);
}

#[test]
fn sigterm_ends_everything() {
    let mut launched = shell(HARD_TO_KILL);
    await_four(&mut launched);
    let pid = rustix::process::Pid::from_child(&launched.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(launched.report(), json!({"exits": [{"signalled": 9}]}));
    await_end(launched.output);
}

#[test]
fn a_chain_of_daemons_that_start_each_other_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let relay = folder.path().join("relay");
    std::fs::write(&relay, "setsid bash \"$0\" & \n").unwrap();
    let mut launched = shell(&format!("echo ready; bash {} ; exec sleep 1000", relay.display()));
    assert_eq!(launched.line(), "ready");
    launched.control = None;
    await_end(launched.output);
}

/// The parent that the next test kills, with its own socket to a launcher.
#[test]
#[ignore = "runs until it is killed"]
fn parent_of_a_launcher() {
    let (mut control, theirs) = UnixStream::pair().unwrap();
    let mut child = command(theirs).spawn().unwrap();
    let spec = json!({"pipeline": [["bash", "-c", HARD_TO_KILL]], "merge_stderr": true});
    tell(&mut control, &spec);
    child.wait().unwrap();
}

#[test]
fn when_the_executor_is_killed_everything_dies_within_a_second() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "parent_of_a_launcher", "--nocapture", "--ignored"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    let mut missing = vec!["daemon", "deaf", "nested", "stopped"];
    while !missing.is_empty() {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "the parent ended early");
        missing.retain(|word| !line.contains(word));
    }
    parent.kill().unwrap();
    await_end(output);
    parent.wait().unwrap();
}

#[test]
fn a_program_inherits_nothing() {
    let file = std::fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let script =
        "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0; grep NoNewPrivs /proc/self/status; pwd";
    let output = shell(script).output();
    // `ls` itself opens one to list them.
    assert_eq!(output, "0 1 2 3 /dev/null\nNoNewPrivs:\t1\n/\n");
}
