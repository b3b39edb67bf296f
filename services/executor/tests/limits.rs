//! What an execution may take, what is said when it takes more, and what is known of its output in the end.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]
#[expect(dead_code, reason = "not all tests use all of it")]
mod rig;

use std::time::Duration;

use executor::{Config, Reach, Sight, Trial, Unavailable};
use rig::{Rig, bash, config, finished, rest, unique, until};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic_types::StatusExt as _;
use wire::executor::{Clock, Ending, ExecuteEvent, OutputStream, ToolStatus, execute_event::Kind};

fn output(events: &[ExecuteEvent]) -> Vec<u8> {
    let chunks = events.iter().filter_map(|event| match &event.kind {
        Some(Kind::Output(chunk)) => Some(chunk.data.to_vec()),
        _ => None,
    });
    chunks.flatten().collect()
}

#[tokio::test]
async fn what_takes_too_long_says_by_which_clock() {
    let mut hasty = config();
    (hasty.concurrency, hasty.queue) = (1, 1);
    hasty.queue_time = Duration::from_millis(100);
    hasty.idle_timeout = Duration::from_millis(400);
    let mut rig = Rig::with(hasty).await;

    let mut held = rig.execute(bash(&unique(), "echo up; tail -f /dev/null")).await.unwrap();
    until(&mut held, |event| matches!(event.kind, Some(Kind::Output(_))).then_some(())).await;
    let queued = rig.bash("echo never").await;
    assert_eq!((queued.ending(), queued.clock()), (Ending::TimedOut, Clock::Queue));
    assert!(queued.error.contains("was not run"), "{}", queued.error);
    let silent = finished(&rest(held).await);
    assert_eq!((silent.ending(), silent.clock()), (Ending::TimedOut, Clock::Idle));

    let mut rig = Rig::new().await;
    let slow = rig.run("bash", &json!({"command": "tail -f /dev/null", "timeout": 1})).await;
    assert_eq!((slow.ending(), slow.clock()), (Ending::TimedOut, Clock::Run));
    let mut late = bash(&unique(), "tail -f /dev/null");
    late.timeout_ms = 100;
    let late = finished(&rest(rig.execute(late).await.unwrap()).await);
    assert_eq!((late.ending(), late.clock()), (Ending::TimedOut, Clock::WholeRun));
    assert_eq!(rig.bash("echo done").await.clock(), Clock::Unspecified);
}

#[tokio::test]
async fn without_a_layer_that_is_required_there_is_no_executor() {
    for (required, without, named) in [
        ("seccomp", "seccomp", "seccomp"),
        ("root", "namespaces", "root"),
        ("landlock", "", ""),
        ("landlock", "no-new-privileges", "landlock"),
    ] {
        let get = |name: &str| match name {
            "SLEUTH_SANDBOX_REQUIRE" => Some(required.to_owned()),
            "SLEUTH_SANDBOX_WITHOUT" => Some(without.to_owned()),
            other => std::env::var(other).ok(),
        };
        let config = Config { launcher: config().launcher, ..Config::from_env(&get).unwrap() };
        match Trial::new(&config).await {
            Ok(_) => assert_eq!(named, "", "{required} without {without}"),
            Err(Unavailable::Layer { layer, .. }) => assert_eq!(layer, named),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn a_launcher_waits_for_the_next_command() {
    // Ticks since the machine started, of which there are 100 a second.
    let now = || -> f64 {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        uptime.split(' ').next().unwrap().parse::<f64>().unwrap() * 100.0
    };
    let get = |name: &str| match name {
        // With the machine's own /proc and process numbers.
        "SLEUTH_SANDBOX_WITHOUT" => Some("namespaces".to_owned()),
        other => std::env::var(other).ok(),
    };
    let trial = Trial::new(&Config { launcher: config().launcher, ..Config::from_env(&get).unwrap() }).await;
    let (trial, stop) = (trial.unwrap(), CancellationToken::new());
    let started = ["bash", "-c", "cut -d' ' -f22 /proc/$PPID/stat"];
    let waited = async {
        loop {
            let before = now();
            let tried = trial.run(Sight::Host, Reach::Nothing, &started, &stop).await;
            if tried.output.trim().parse::<f64>().unwrap() < before - 1.0 {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.expect("a launcher that was started before");
}

#[tokio::test]
async fn who_finds_no_room_is_told_when_to_come_again() {
    let mut narrow = config();
    (narrow.concurrency, narrow.queue) = (1, 0);
    let mut rig = Rig::with(narrow).await;
    let held = rig.execute(bash(&unique(), "tail -f /dev/null")).await.unwrap();
    let full = rig.execute(bash(&unique(), "echo more")).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted);
    let retry = full.get_error_details().retry_info().and_then(|retry| retry.retry_delay);
    assert!(retry.is_some_and(|delay| delay > Duration::ZERO), "{full:?}");
    drop(held);
}

#[tokio::test]
async fn endless_output_ends_at_the_limit() {
    let mut small = config();
    (small.output_bytes, small.output_limit) = (1 << 10, 100 << 10);
    let end = Rig::with(small).await.bash("cat /dev/zero").await;
    assert_eq!((end.status(), end.ending()), (ToolStatus::Error, Ending::OutputLimit));
    assert!(end.error.contains("102400 bytes") && end.data.len() < 2 << 10, "{}", end.error);
}

#[tokio::test]
async fn secrets_leave_in_no_part_of_an_execution() {
    let mut rig = Rig::new().await;
    let command = "printf 'password=hun'; sleep 0.1; echo ter2; echo token=3f9a8b7c6d5e >&2; echo plain";
    let events = rest(rig.execute(bash(&unique(), command)).await.unwrap()).await;
    let end = finished(&events);
    assert_eq!(
        String::from_utf8(output(&events)).unwrap(),
        "password=[masked:password]\ntoken=[masked:token]\nplain\n"
    );
    assert!(
        !format!("{events:?}").contains("hunter2") && !format!("{events:?}").contains("3f9a8b"),
        "{end:?}"
    );
    assert!(end.redacted_spans >= 3, "{end:?}");
    let refused = rig.bash("deploy --password hunter2").await;
    assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
}

#[tokio::test]
async fn the_digest_is_that_of_the_whole_stream() {
    let mut small = config();
    small.output_bytes = 64;
    let end = Rig::with(small).await.bash("seq 1000").await;
    let stdout = end.streams.iter().find(|stream| stream.stream() == OutputStream::Stdout).unwrap();
    let whole: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    assert_eq!((stdout.bytes, stdout.sha256.as_ref()), (whole.len() as u64, &grants::sha256(&whole)[..]));
    assert!(end.omitted_bytes > 0);
}
