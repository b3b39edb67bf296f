//! A PostgreSQL server of a test's own.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::{components::has, process::descendants};

/// How long a server may take until it answers.
const START_TIME: Duration = Duration::from_secs(60);
/// The user that a server runs as where the tests run as root: it refuses to be root.
const USER: &str = "postgres";

/// A server with an empty cluster, reached by a socket in its own folder. It ends when this is dropped.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: TempDir,
    server: Child,
}

impl Postgres {
    /// Starts a server; `None` if the machine has no PostgreSQL.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        let programs = programs();
        if !has("postgres", programs.is_some()) {
            return Ok(None);
        }
        let programs = programs.context("PostgreSQL has gone")?;
        let folder = TempDir::new()?;
        if geteuid().is_root() {
            succeed(Command::new("chown").arg(USER).arg(folder.path())).await?;
        }
        let data = folder.path().join("data");
        let arguments = ["--username=sleuth", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"];
        succeed(command(&programs, "initdb").arg("--pgdata").arg(data).args(arguments)).await?;
        let server = serve(&programs, folder.path())?;
        let mut postgres = Self { programs, folder, server };
        postgres.answers().await?;
        Ok(Some(postgres))
    }

    /// Makes a database and returns its URL.
    ///
    /// # Errors
    /// If it is there already.
    pub async fn database(&self, name: &str) -> anyhow::Result<String> {
        let mut create = command(&self.programs, "createdb");
        succeed(create.args(["--username=sleuth", name]).arg("--host").arg(self.folder.path())).await?;
        let host = self.folder.path().display().to_string().replace('/', "%2F");
        Ok(format!("postgres://sleuth@{host}/{name}"))
    }

    /// Kills the server and all that it has started, without warning.
    ///
    /// # Errors
    /// If it is not there any more.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.kill_all();
        self.server.wait().await?;
        Ok(())
    }

    fn kill_all(&mut self) {
        let Some(id) = self.server.id() else { return };
        // Stopped first, so that it starts nothing more: a process without a server could stay for ever.
        send(id, Signal::STOP);
        descendants(id).into_iter().for_each(|(process, _)| send(process, Signal::KILL));
        send(id, Signal::KILL);
    }

    /// Starts a killed server again, on what it has left.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.server = serve(&self.programs, self.folder.path())?;
        self.answers().await
    }

    async fn answers(&mut self) -> anyhow::Result<()> {
        let ready = async {
            loop {
                let mut ask = command(&self.programs, "pg_isready");
                ask.arg("--quiet").arg("--host").arg(self.folder.path());
                if ask.status().await?.success() {
                    return Ok(());
                }
                if self.server.try_wait()?.is_some() {
                    // What the killed server has left behind is still going away.
                    self.server = serve(&self.programs, self.folder.path())?;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(START_TIME, ready).await.context("PostgreSQL does not start")?
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn send(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(process, signal);
    }
}

/// The folder of the server's programs, as Debian and its relatives have it.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<_> = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect();
    folders.retain(|folder| folder.join("initdb").is_file());
    folders.sort();
    folders.pop()
}

/// One of the server's programs, as somebody who is not root.
fn command(programs: &Path, name: impl AsRef<OsStr>) -> Command {
    let program = programs.join(name.as_ref());
    let mut command = if geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    // No folder that only root may enter.
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

fn serve(programs: &Path, folder: &Path) -> anyhow::Result<Child> {
    let mut server = command(programs, "postgres");
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    server.args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
    server.spawn().context("cannot start PostgreSQL")
}

async fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stderr(Stdio::piped()).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{command:?} ended with {}: {said}", output.status);
    Ok(())
}
