//! Real sleuth processes on free ports of loopback.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::watch,
    time::{sleep, timeout},
};

/// How long a process may take to say that it is ready.
const START_TIME: Duration = Duration::from_secs(60);
/// How long it may take to end once it was asked to.
const END_TIME: Duration = Duration::from_secs(60);
/// How often is looked for what no process tells.
const TICK: Duration = Duration::from_millis(50);

/// The sleuth program beside the running test.
///
/// # Errors
/// If it was not built: `cargo build --workspace` does.
pub fn program() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let found = test.ancestors().skip(1).map(|folder| folder.join("sleuth")).find(|path| path.is_file());
    found.context("the sleuth program is not built: run `cargo build --workspace` first")
}

/// How to start a process.
#[derive(Clone, Debug, Default)]
pub struct Start {
    arguments: Vec<OsString>,
    variables: Vec<(String, OsString)>,
    /// What it is told of names and addresses instead of what the machine knows.
    hosts: Option<PathBuf>,
    /// Files that exist as long as the process.
    files: Vec<Arc<NamedTempFile>>,
}

impl Start {
    /// Starts with these arguments, in an environment of only what programs need to run.
    pub fn new<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self { arguments: arguments.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// `sleuth serve` on free ports.
    pub fn serve() -> Self {
        Self::new(["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"])
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a model list.
    ///
    /// # Errors
    /// If it cannot be written to a file.
    pub fn models(mut self, yaml: &str) -> anyhow::Result<Self> {
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), yaml)?;
        self = self.env("MODEL_LIST_FILE_LOCATION", file.path());
        self.files.push(Arc::new(file));
        Ok(self)
    }

    /// Lets it know only these names, in the form of `/etc/hosts`. Needs [`Start::can_name`].
    ///
    /// # Errors
    /// If they cannot be written to a file.
    pub fn hosts(mut self, names: &str) -> anyhow::Result<Self> {
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), names)?;
        self.hosts = Some(file.path().to_owned());
        self.files.push(Arc::new(file));
        Ok(self)
    }

    /// Whether this machine lets a process have names of its own.
    pub fn can_name() -> bool {
        let mut mount = std::process::Command::new("unshare");
        mount.args(["--map-root-user", "--mount", "mount", "--bind", "/etc/hosts", "/etc/hosts"]);
        let works = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        crate::components::has("own-names", works)
    }

    /// The command, with the environment but without pipes.
    ///
    /// # Errors
    /// If the program was not built.
    pub fn command(&self) -> anyhow::Result<Command> {
        let mut command = match &self.hosts {
            None => Command::new(program()?),
            Some(hosts) => {
                let mut command = Command::new("unshare");
                command.args(["--map-root-user", "--mount", "sh", "-c"]);
                command.arg(r#"mount --bind "$0" /etc/hosts && exec "$@""#).arg(hosts).arg(program()?);
                command
            }
        };
        command.args(&self.arguments).env_clear().kill_on_drop(true);
        for name in ["PATH", "HOME", "TMPDIR", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // No cluster of the person who runs the tests is looked at.
        command.env("KUBECONFIG", "/nonexistent/kubeconfig").envs(self.variables.iter().cloned());
        Ok(command)
    }

    /// Starts it and waits until it says that it is ready.
    ///
    /// # Errors
    /// If it does not start; its log is in the error.
    pub async fn start(self) -> anyhow::Result<Sleuth> {
        let data = TempDir::new()?;
        let mut command = self.command()?;
        if self.variables.iter().all(|(name, _)| name != "SLEUTH_DATA_DIR") {
            command.env("SLEUTH_DATA_DIR", data.path());
        }
        // What a process says of itself, not what its executor says.
        let wanted = match self.arguments.first().and_then(|first| first.to_str()) {
            Some("serve") | None => "sleuth is ready".to_owned(),
            Some(service) => format!("the {service} is ready"),
        };
        command
            .args(["--log-format", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = child.stderr.take().context("no standard error")?;
        let (ready_to, mut ready) = watch::channel(None);
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        tokio::spawn(async move {
            let mut reader = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = reader.next_line().await {
                if let Ok(record) = serde_json::from_str::<Value>(&line)
                    && record["message"].as_str().is_some_and(|message| message.starts_with(&wanted))
                {
                    ready_to.send_replace(Some(record));
                }
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        let mut sleuth = Sleuth { child, log, ready: Value::Null, _files: self.files, _data: data };
        match timeout(START_TIME, ready.wait_for(Option::is_some)).await {
            Ok(Ok(record)) => sleuth.ready = record.clone().unwrap_or_default(),
            _ => bail!("sleuth did not start:\n{}", sleuth.log().join("\n")),
        }
        Ok(sleuth)
    }
}

/// A running process. Dropping it kills it, and with it everything that it has started.
#[derive(Debug)]
pub struct Sleuth {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    ready: Value,
    _files: Vec<Arc<NamedTempFile>>,
    /// What it keeps, unless the test gave it another place.
    _data: TempDir,
}

impl Sleuth {
    /// Where it listens, by the name under which it says so: `http`, `grpc` or `address`.
    ///
    /// # Errors
    /// If it did not say so.
    pub fn address(&self, name: &str) -> anyhow::Result<SocketAddr> {
        let text = self.ready[name].as_str().with_context(|| format!("no `{name}` in {}", self.ready))?;
        Ok(text.parse()?)
    }

    /// A URL of its HTTP side.
    ///
    /// # Errors
    /// If it has none.
    pub fn url(&self, path: &str) -> anyhow::Result<String> {
        Ok(format!("http://{}{path}", self.address("http")?))
    }

    /// A URL of its gRPC side.
    ///
    /// # Errors
    /// If it has none.
    pub fn grpc(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}", self.address("grpc")?))
    }

    /// Its process id.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// If it does not end, or not well.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.id().context("it has ended already")?;
        signal(id, "TERM").await?;
        let status = timeout(END_TIME, self.child.wait()).await.context("it does not end")??;
        anyhow::ensure!(status.success(), "it ended with {status}:\n{}", self.log().join("\n"));
        Ok(())
    }

    /// Kills the executor that it has started, and waits until it has another one.
    ///
    /// # Errors
    /// If there is none, or no other comes.
    pub async fn lose_executor(&self) -> anyhow::Result<()> {
        let id = self.id().context("it has ended already")?;
        let executor = || {
            let all = descendants(id);
            all.into_iter().find(|(_, command)| command.contains(" executor --listen")).map(|(id, _)| id)
        };
        let lost = executor().context("it has no executor")?;
        signal(lost, "KILL").await?;
        let ready = self.url("/readyz")?;
        let comes = async {
            while executor().is_none_or(|id| id == lost) || !reqwest::get(&ready).await?.status().is_success()
            {
                sleep(TICK).await;
            }
            Ok(())
        };
        timeout(START_TIME, comes).await.context("no other executor comes")?
    }

    /// Kills it without warning.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}

/// Sends a signal, by name, to a process.
///
/// # Errors
/// If there is no such process.
pub async fn signal(id: u32, name: &str) -> anyhow::Result<()> {
    let status = Command::new("kill").args([format!("-{name}"), id.to_string()]).status().await?;
    anyhow::ensure!(status.success(), "there is no process {id}");
    Ok(())
}

/// Processes below a process, at any depth, with their command lines. Without launchers that wait for a command.
pub fn descendants(id: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut parents = vec![id];
    while let Some(parent) = parents.pop() {
        for (child, command) in children(parent) {
            parents.push(child);
            found.push((child, command));
        }
    }
    found
}

/// Workspaces that executors have made below a folder.
pub fn workspaces(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.is_dir())
        .flat_map(|path| {
            let is_one = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("w-"));
            if is_one { vec![path] } else { workspaces(&path) }
        })
        .collect()
}

fn children(parent: u32) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| {
        let folder = PathBuf::from(format!("/proc/{id}"));
        let waits =
            std::fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.trim() == "sleuth-waits");
        (parent_of(&folder)? == parent && !waits).then(|| (id, command_line(&folder)))
    })
    .collect()
}

fn parent_of(folder: &Path) -> Option<u32> {
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

fn command_line(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("cmdline")).unwrap_or_default().replace('\0', " ").trim().to_owned()
}
