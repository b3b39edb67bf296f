//! The sandbox holds: every way out of `data/escapes.tsv` fails in it, and works without it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed step fails the test, and what is left out is said"
)]

mod arena;

use std::{collections::BTreeSet, os::unix::process::CommandExt as _, path::Path, process::Command};

use arena::Arena;
use executor::{Config, Level, Reach, Sight, Trial};
use tokio_util::sync::CancellationToken;

/// Where the launcher is, if not where it was built.
const LAUNCHER: &str = "SLEUTH_TEST_LAUNCHER";
/// What not every kernel offers: where it fails without the sandbox, nothing is shown by its failing within.
const MAYBE: &[&str] = &["alg", "vsock", "uring", "uffd", "userns", "ipv6", "block", "resource"];
const NOBODY: u32 = 65534;

#[derive(Debug)]
struct Attempt<'a> {
    name: &'a str,
    sights: Vec<Sight>,
    reach: Reach,
    stopped_by: Level,
    needs: BTreeSet<&'a str>,
    script: &'a str,
}

fn attempts() -> Vec<Attempt<'static>> {
    let lines = include_str!("data/escapes.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(attempt).collect()
}

fn attempt(line: &str) -> Attempt<'_> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, place, level, needs, script] = <[_; 5]>::try_from(fields).unwrap();
    let (sees, reaches) = place.split_once(' ').unwrap();
    let sights = match sees {
        "host" => vec![Sight::Host],
        "private" => vec![Sight::Private],
        "both" => vec![Sight::Host, Sight::Private],
        "all" => vec![Sight::Host, Sight::Private, Sight::Approved],
        other => unreachable!("{other}"),
    };
    Attempt {
        name,
        sights,
        reach: if reaches == "gate" { Reach::Gate } else { Reach::Nothing },
        stopped_by: if level == "full" { Level::Full } else { Level::Pod },
        needs: needs.split(',').filter(|need| *need != "-").collect(),
        script,
    }
}

/// Whether this machine and user have what an attempt needs.
fn has(need: &str) -> bool {
    match need {
        "root" => rustix::process::geteuid().is_root(),
        "x86_64" => cfg!(target_arch = "x86_64"),
        "perl" => Command::new("perl").args(["-MSocket", "-e", "1"]).status().is_ok_and(|it| it.success()),
        "groups" => Path::new("/sys/fs/cgroup").is_dir(),
        _ => true,
    }
}

fn config(arena: &Arena, more: &[(&str, &str)]) -> Config {
    let get = |name: &str| {
        let own = more.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        own.or_else(|| arena.variable(name)).or_else(|| std::env::var(name).ok())
    };
    let mut config = Config::from_env(&get).unwrap();
    let built = || env!("CARGO_BIN_EXE_sleuth-launch").to_owned();
    config.launcher = std::env::var(LAUNCHER).unwrap_or_else(|_| built()).into();
    config
}

/// Makes every attempt in the sandbox and without it. Returns how many the sandbox stopped wherever they were made.
async fn stopped(more: &[(&str, &str)]) -> usize {
    let arena = Arena::build();
    let trial = Trial::new(&config(&arena, more)).await.unwrap();
    let free = Trial::new(&config(&arena, &[("SLEUTH_SANDBOX", "off")])).await.unwrap();
    println!("level {}", trial.level());
    let mut stopped = BTreeSet::new();
    let mut failures = Vec::new();
    for attempt in attempts() {
        if let Some(missing) = attempt.needs.iter().find(|need| !has(need)) {
            println!("skipped: {}: it needs {missing}", attempt.name);
            continue;
        }
        for sight in &attempt.sights {
            let before = arena.refresh();
            let arguments = arena.arguments(attempt.script);
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            let stop = CancellationToken::new();
            let within = trial.run(*sight, attempt.reach, &arguments, &stop).await;
            // What was approved may change the machine.
            let changed = *sight != Sight::Approved && arena.state() != before;
            let without = free.run(Sight::Everything, Reach::Everything, &arguments, &stop).await;
            let what = format!("{} ({sight:?}, {})", attempt.name, within.level);
            if !without.output.contains("ESCAPED") {
                if attempt.needs.iter().any(|need| MAYBE.contains(need)) {
                    println!("skipped: {what}: this machine does not offer it");
                } else {
                    failures.push(format!("{what}: does not work without the sandbox: {}", without.output));
                }
            } else if within.level < attempt.stopped_by
                || attempt.needs.contains("cgroup") && !within.layers.contains(&"cgroup")
            {
                println!("skipped: {what}: only a stronger sandbox stops it");
            } else if within.output.contains("ESCAPED") || changed {
                failures.push(format!("{what}: escaped: {}", within.output));
            } else if within.output.contains("sandbox") {
                failures.push(format!("{what}: did not start: {}", within.output));
            } else {
                stopped.insert(attempt.name);
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{} attempts stopped", stopped.len());
    stopped.len()
}

/// Bounds that an attempt can reach in a moment.
const BOUNDS: [(&str, &str); 2] = [("SLEUTH_SANDBOX_MEMORY_MB", "256"), ("SLEUTH_SANDBOX_PROCESSES", "64")];

#[tokio::test]
async fn no_attempt_escapes() {
    let root = rustix::process::geteuid().is_root();
    assert!(stopped(&BOUNDS).await >= if root { 80 } else { 50 });
}

#[tokio::test]
async fn no_attempt_escapes_where_only_a_pod_sandbox_can_be_had() {
    let root = rustix::process::geteuid().is_root();
    assert!(stopped(&[("SLEUTH_SANDBOX_WITHOUT", "namespaces,cgroup")]).await >= if root { 75 } else { 50 });
}

/// The tests above, as a user without any right.
#[test]
fn an_ordinary_user_is_held_too() {
    if !has("root") {
        println!("skipped: the other tests ran as an ordinary user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    std::fs::set_permissions(folder.path(), mode(0o755)).unwrap();
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let launcher = copy(Path::new(env!("CARGO_BIN_EXE_sleuth-launch")), "launcher");
    let output = Command::new(tests)
        .args(["no_attempt_escapes", "--nocapture", "--test-threads=1"])
        .env(LAUNCHER, launcher)
        .env("HOME", "/nonexistent")
        .env_remove("TMPDIR")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Executors that end while another prepares a sandbox take the directories with them that it is about to hide.
/// Older kernels have Landlock without rules for TCP.
#[tokio::test]
async fn what_a_gate_leaves_open_is_reported() {
    let arena = Arena::build();
    for without in ["namespaces", "namespaces,landlock-tcp"] {
        let trial = Trial::new(&config(&arena, &[("SLEUTH_SANDBOX_WITHOUT", without)])).await.unwrap();
        let arguments = arena.arguments("exec 9<>/dev/tcp/127.0.0.1/$3 && echo ESCAPED");
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let tried = trial.run(Sight::Host, Reach::Gate, &arguments, &CancellationToken::new()).await;
        let (is_closed, is_open) = (tried.layers.contains(&"landlock-tcp"), tried.output.contains("ESCAPED"));
        assert_ne!(is_closed, is_open, "{tried:?}");
        assert!(is_open || !without.contains("tcp"), "{tried:?}");
    }
}

#[tokio::test]
async fn what_is_to_be_hidden_may_be_gone_meanwhile() {
    let arena = Arena::build();
    let trial = Trial::new(&config(&arena, &[])).await.unwrap();
    let enough = CancellationToken::new();
    let others = std::thread::spawn({
        let enough = enough.clone();
        move || {
            while !enough.is_cancelled() {
                let directories: Vec<_> = (0..20)
                    .map(|_| tempfile::Builder::new().prefix("sleuth-other-").tempdir().unwrap())
                    .collect();
                drop(directories);
            }
        }
    });
    let stop = CancellationToken::new();
    let mut failures = Vec::new();
    for _ in 0..40 {
        let tried = trial.run(Sight::Host, Reach::Nothing, &["true"], &stop).await;
        failures.extend((tried.code != Some(0)).then_some(tried.output));
    }
    enough.cancel();
    others.join().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
}
