//! Starting launchers, with the job that each gets.

use std::{
    ffi::OsString,
    io,
    net::TcpListener,
    os::{fd::OwnedFd, unix::net},
    path::Path,
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use super::{Job, Report, Spec, launcher};
use crate::sandbox::{self, Access, Confinement, Layer, Refused};

/// How long a launcher may take to read its job.
pub(super) const START_TIME: Duration = Duration::from_secs(10);

/// Standard output and standard error, for whoever started it.
pub(super) fn piped() -> (Stdio, Stdio) {
    (Stdio::piped(), Stdio::piped())
}

/// Gets what listens at a gate.
pub(super) type Opener<'a> = Box<dyn FnOnce(TcpListener) + Send + 'a>;

/// Starts a launcher with a job. With `open`, it passes out where the command's gate listens.
pub(super) async fn start(
    program: &Path,
    environment: &[(OsString, OsString)],
    job: &Job,
    (stdout, stderr): (Stdio, Stdio),
    open: Option<Opener<'_>>,
) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let child = Command::new(program)
        .arg(launcher::ARG)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(stdout)
        .stderr(stderr)
        .spawn()?;
    let mut control = UnixStream::from_std(ours)?;
    let mut text = serde_json::to_vec(job)?;
    text.push(b'\n');
    control.write_all(&text).await?;
    if let Some(open) = open {
        let passed = control.async_io(Interest::READABLE, || sandbox::receive(&control)).await?;
        open(passed.map(TcpListener::from).ok_or(io::ErrorKind::ConnectionAborted)?);
    }
    Ok((child, control))
}

/// Starts a command without programs: says which layer it cannot have.
pub(super) async fn try_confinement(
    program: &Path,
    environment: &[(OsString, OsString)],
    confinement: Confinement,
    access: Access,
) -> Result<(), Refused> {
    let spec = Spec { access, ..Spec::nothing() };
    let job = Job { spec, confinement, interpreter: false };
    let attempt = async {
        let (_child, mut control) = start(program, environment, &job, piped(), None).await?;
        let mut report = Vec::new();
        control.read_to_end(&mut report).await?;
        Ok::<Report, io::Error>(serde_json::from_slice(&report)?)
    };
    let failed =
        |error: io::Error| Refused { layer: Layer::NoNewPrivileges, why: format!("the launcher: {error}") };
    match timeout(START_TIME, attempt).await.unwrap_or_else(|late| Err(late.into())).map_err(failed)? {
        Report::Exits(_) => Ok(()),
        Report::Lost => Err(failed(io::ErrorKind::BrokenPipe.into())),
        Report::Refused(refused) => Err(refused),
    }
}
