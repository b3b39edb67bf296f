//! The executor as a supervised child: started with a socket in a private directory, restarted when it dies
//! alone, ended with its parent.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use executor::Scratch;
use grants::PublicKey;
use runtime::telemetry;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    net::UnixStream,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// How long an executor may take until its socket is there.
const START_TIME: Duration = Duration::from_secs(10);
/// How long it may take to end everything that it runs.
const END_TIME: Duration = Duration::from_secs(10);
/// Pause before a restart: doubled after each short life, up to the longest.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A life that is not short.
const LONG_LIFE: Duration = Duration::from_secs(30);

/// Keeps one executor running until it is told to stop, or dropped.
#[derive(Debug)]
pub(crate) struct Supervisor {
    address: String,
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
    /// Removed last: the socket is in it.
    _directory: Scratch,
}

impl Supervisor {
    /// Starts an executor, which logs as `log` says, has the toolsets of a file, trusts what is signed with one key
    /// and hides what is in `data`, and waits until it listens.
    pub(crate) async fn start(
        log: telemetry::Config,
        toolsets: Option<PathBuf>,
        approvals: PublicKey,
        data: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let directory = Scratch::new()?;
        let socket = directory.path().join("executor.sock");
        let program = std::env::current_exe().context("cannot find my own program")?;
        let plan = Plan { program, socket: socket.clone(), log, toolsets, approvals, data };
        let mut child = plan.spawn()?;
        listening(&mut child, &socket).await?;
        let stop = CancellationToken::new();
        let task = AbortOnDropHandle::new(tokio::spawn(plan.supervise(child, stop.clone())));
        Ok(Self { address: format!("unix:{}", socket.display()), stop, task, _directory: directory })
    }

    /// Where the executor listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Ends the executor and everything that it runs.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // Nothing of the task can fail.
        let _ = self.task.await;
    }
}

/// How to start the executor.
struct Plan {
    program: PathBuf,
    socket: PathBuf,
    log: telemetry::Config,
    toolsets: Option<PathBuf>,
    /// What its grants must be signed with.
    approvals: PublicKey,
    /// The directory of the services beside it, with the key that signs: no command may read it.
    data: Option<PathBuf>,
}

impl Plan {
    fn spawn(&self) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .arg("executor")
            .arg("--listen")
            .arg(format!("unix:{}", self.socket.display()))
            .args(["--parent", &std::process::id().to_string()])
            .args(["--log", &self.log.filter, "--log-format", self.log.format.name()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // A Ctrl-C on the terminal is for the parent, which ends the child in its own order.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(file) = &self.toolsets {
            command.arg("--toolsets").arg(file);
        }
        for name in hidden() {
            command.env_remove(name);
        }
        command.env("SLEUTH_GRANT_KEYS", self.approvals.to_string());
        if let Some(data) = &self.data {
            command.env("SLEUTH_DATA_DIR", data);
        }
        command.spawn().context("cannot start the executor")
    }

    async fn supervise(self, mut child: Child, stop: CancellationToken) {
        let mut pause = PAUSE;
        loop {
            let born = Instant::now();
            tokio::select! {
                () = stop.cancelled() => return end(child).await,
                status = child.wait() => tracing::error!(status = %Status(status.ok()), "the executor died and is restarted"),
            }
            pause = if born.elapsed() > LONG_LIFE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            child = loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = sleep(pause) => {}
                }
                match self.spawn() {
                    Ok(child) => break child,
                    Err(error) => tracing::error!(%error, "the executor cannot be restarted"),
                }
            };
        }
    }
}

/// Variables that an executor must not see: keys of models and of approvals, the way to the store.
fn hidden() -> impl Iterator<Item = String> {
    const HIDDEN: [&str; 4] = ["API_KEY", "SLEUTH_SIGNING_KEY", "SLEUTH_STORE", super::storage::PASSWORD];
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.ends_with("_API_KEY") || HIDDEN.contains(&name.as_str()))
}

struct Status(Option<ExitStatus>);

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(status) => status.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

async fn end(mut child: Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::TERM);
    }
    if timeout(END_TIME, child.wait()).await.is_err() {
        tracing::warn!("the executor does not end and is killed");
        let _ = child.kill().await;
    }
}

async fn listening(child: &mut Child, socket: &Path) -> anyhow::Result<()> {
    let connected = async {
        while UnixStream::connect(socket).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        status = child.wait() => anyhow::bail!("the executor ended at once: {}", Status(status.ok())),
        late = timeout(START_TIME, connected) => late.context("the executor does not listen"),
    }
}
