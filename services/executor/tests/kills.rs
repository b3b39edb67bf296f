//! Commands end when they are told to, whatever they do against it, and never take the executor's memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

use std::time::Duration;

use executor::{Config, Reach, Sight, Trial, Tried};
use tokio_util::sync::CancellationToken;

const SIGHTS: [Sight; 4] = [Sight::Private, Sight::Host, Sight::Approved, Sight::Everything];

async fn trial(more: &[(&str, &str)]) -> Trial {
    let get = |name: &str| {
        let own = more.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        own.or_else(|| std::env::var(name).ok())
    };
    let mut config = Config::from_env(&get).unwrap();
    config.launcher = env!("CARGO_BIN_EXE_sleuth-launch").into();
    config.output_bytes = 1 << 16;
    Trial::new(&config).await.unwrap()
}

/// The bounds that keep a fork bomb from the rest of the machine.
const FEW: (&str, &str) = ("SLEUTH_SANDBOX_PROCESSES", "100");

/// Commands that do not want to end. `MARK` is in the command line of what they leave.
const STUBBORN: &[(&str, &str)] = &[
    ("a plain tree", "sleep MARK & (sleep MARK & wait) & wait"),
    ("a daemon", "(setsid bash -c 'trap \"\" TERM HUP; exec sleep MARK' &); sleep MARK"),
    ("a daemon of a daemon", "(setsid bash -c '(setsid bash -c \"exec sleep MARK\" &)' &); sleep MARK"),
    ("one that ignores signals", "trap '' TERM INT HUP; while :; do sleep MARK; done"),
    ("one that is stopped", "bash -c 'sleep MARK & kill -STOP $$; wait'"),
    ("one that holds the pipe", "(setsid sleep MARK &) ; exec sleep MARK"),
    (
        "one that goes on forking",
        "sleep MARK & f() { while :; do (sleep MARK &); sleep 0.1; done; }; f & f & wait",
    ),
];

fn alive(mark: &str) -> Vec<String> {
    let commands = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&command).replace('\0', " "))
    });
    commands.filter(|command| command.contains(mark)).collect()
}

#[tokio::test]
async fn nothing_survives_the_order_to_end() {
    end_all(trial(&[FEW]).await, "77").await;
}

/// There, a scan finds what is to be ended.
#[tokio::test]
async fn nothing_survives_where_only_a_pod_sandbox_can_be_had() {
    end_all(trial(&[FEW, ("SLEUTH_SANDBOX_WITHOUT", "namespaces,cgroup")]).await, "78").await;
}

async fn end_all(trial: Trial, marks: &str) {
    for (index, (name, script)) in STUBBORN.iter().enumerate() {
        for (at, sight) in SIGHTS.iter().enumerate() {
            let mark = format!("{marks}{index}{at}{}", std::process::id());
            let script = script.replace("MARK", &mark);
            let stop = CancellationToken::new();
            let arguments = ["bash", "-c", &script];
            let running = trial.run(*sight, Reach::Nothing, &arguments, &stop);
            let ended = tokio::time::timeout(Duration::from_secs(30), async {
                let end = async {
                    seen(&mark).await;
                    stop.cancel();
                };
                tokio::join!(running, end).0
            });
            let tried = ended.await.unwrap_or_else(|_| panic!("{name} ({sight:?}) does not end"));
            assert!(tried.code.is_none_or(|code| code != 0), "{name} ({sight:?}): {tried:?}");
            assert_eq!(alive(&mark), Vec::<String>::new(), "{name} ({sight:?})");
        }
    }
}

/// Waits until the last of them is there.
async fn seen(mark: &str) {
    while !alive(mark).iter().any(|command| command.starts_with("sleep")) {
        tokio::task::yield_now().await;
    }
}

/// Runs a command that writes a lot.
async fn flood(script: &str) -> Tried {
    let trial = trial(&[]).await;
    trial.run(Sight::Host, Reach::Nothing, &["bash", "-c", script], &CancellationToken::new()).await
}

#[tokio::test]
async fn endless_output_costs_no_memory() {
    for (script, bytes) in [
        ("yes | head -c 200000000", 200_000_000),
        ("head -c 1000000000 /dev/zero", 1_000_000_000),
        ("head -c 100000000 /dev/zero | tr '\\0' x", 100_000_000),
        ("yes $'\\e[31m\\e]0;title\\a' | head -c 50000000", 50_000_000),
    ] {
        let before = memory();
        let tried = flood(script).await;
        assert_eq!((tried.code, tried.bytes), (Some(0), bytes), "{script}");
        assert!(tried.output.len() < 1 << 18, "{script}: {} bytes kept", tried.output.len());
        let grown = memory().saturating_sub(before);
        assert!(grown < 32 << 20, "{script}: {grown} bytes more");
    }
}

/// What this process has in memory.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test]
async fn a_fork_bomb_is_bounded_and_ends() {
    let trial = trial(&[FEW]).await;
    let stop = CancellationToken::new();
    for sight in [Sight::Private, Sight::Host] {
        let bomb = ["bash", "-c", "b() { b | b & }; b; sleep 2; exit 3"];
        let tried = trial.run(sight, Reach::Nothing, &bomb, &stop).await;
        if !tried.layers.contains(&"cgroup") && !tried.layers.contains(&"user-namespace") {
            println!("skipped: {sight:?}: nothing bounds processes here");
            continue;
        }
        assert_ne!(tried.code, Some(0), "{sight:?}: {tried:?}");
    }
}

#[tokio::test]
async fn one_that_takes_all_memory_is_told_apart() {
    let trial = trial(&[("SLEUTH_SANDBOX_MEMORY_MB", "64")]).await;
    let greedy = ["bash", "-c", "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c"];
    let tried = trial.run(Sight::Private, Reach::Nothing, &greedy, &CancellationToken::new()).await;
    if tried.layers.contains(&"cgroup") {
        assert!(tried.out_of_memory, "{tried:?}");
    } else {
        println!("skipped: no control groups here");
    }
}

/// The host's view is of use: what an investigation looks at can be seen.
#[tokio::test]
async fn the_host_can_be_seen() {
    let trial = trial(&[]).await;
    let victim = std::process::id().to_string();
    for script in [
        "ps -p $0 >/dev/null",
        "df -P / >/dev/null",
        "cat /proc/meminfo /proc/loadavg /proc/net/tcp >/dev/null",
        "ls /sys/block /var/log /etc >/dev/null",
        "cat <(echo x) >/dev/null && echo x 2>/dev/null >/dev/stderr",
        "echo x >$TMPDIR/file && grep -q x $TMPDIR/file",
        "[ $(id -u) != 0 ] || [ ! -r /dev/kmsg ] || dd if=/dev/kmsg bs=8k count=1 iflag=nonblock status=none >/dev/null",
        "! command -v ss || ss -ltn >/dev/null",
        "! command -v ip || ip address >/dev/null",
    ] {
        let stop = CancellationToken::new();
        let tried = trial.run(Sight::Host, Reach::Nothing, &["bash", "-c", script, &victim], &stop).await;
        assert_eq!(tried.code, Some(0), "{script}: {tried:?}");
    }
}

/// A person who allows a change means this machine, and its other processes.
#[tokio::test]
async fn what_was_approved_changes_the_machine() {
    let trial = trial(&[]).await;
    let folder = tempfile::Builder::new().prefix("approved-").tempdir().unwrap();
    let place = folder.path().display().to_string();
    for script in [
        "echo x >$0/file && grep -q x $0/file",
        "mkdir $0/a $0/b && echo x >$0/a/file && mv $0/a/file $0/b/ && ln $0/b/file $0/a/ && rm -r $0/a $0/b",
        "chmod 600 $0/file && touch -d @0 $0/file && [ $(stat -c %a,%Y $0/file) = 600,0 ]",
        "[ $(id -u) != 0 ] || { chown 1:1 $0/file && [ $(stat -c %u $0/file) = 1 ]; }",
        "mknod $0/pipe p && rm $0/pipe",
        "echo x >/dev/null && [ $(head -c 4 /dev/zero | wc -c) = 4 ] && echo x >/dev/shm/approved-$$ && rm /dev/shm/approved-$$",
        "[ ! -S /dev/log ] || ! command -v logger || logger -s approved",
        "exec 9<>/dev/tcp/127.0.0.1/$1 && grep -q welcome <&9",
        "cat /etc/passwd /proc/meminfo /proc/net/tcp >/dev/null && ps -p $PPID >/dev/null",
    ] {
        let stop = CancellationToken::new();
        let tried = trial.run(Sight::Approved, Reach::Gate, &["bash", "-c", script, &place], &stop).await;
        assert_eq!(tried.code, Some(0), "{script}: {tried:?}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "x\n");
    let mut victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = victim.id().to_string();
    let stop = CancellationToken::new();
    let script = "renice 19 -p $0 && prlimit --pid $0 --core=0:0 && kill -9 $0";
    let tried = trial.run(Sight::Approved, Reach::Nothing, &["bash", "-c", script, &pid], &stop).await;
    assert_eq!(tried.code, Some(0), "{tried:?}");
    assert!(!victim.wait().unwrap().success());
}

#[tokio::test]
async fn what_listens_at_a_gate_is_reached_and_nothing_else() {
    let trial = trial(&[]).await;
    let script = "exec 9<>/dev/tcp/127.0.0.1/$0 && cat <&9";
    for sight in [Sight::Private, Sight::Host] {
        let stop = CancellationToken::new();
        let tried = trial.run(sight, Reach::Gate, &["bash", "-c", script], &stop).await;
        assert_eq!(tried.output, "welcome\n", "{sight:?}: {tried:?}");
    }
}
