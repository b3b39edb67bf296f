//! Starting launchers, with the job that each gets, and ending those that do not end by themselves.

use std::{
    ffi::OsString,
    io,
    net::TcpListener,
    os::{fd::OwnedFd, unix::net},
    path::Path,
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::UnixStream,
    process::{Child, Command},
    time::{Instant, timeout, timeout_at},
};

use super::{Exit, Job, Report, Spec, WORD, launcher, stream::DRAIN_TIME, tree};
use crate::sandbox::{self, Access, Confinement, Layer, Refused};

/// Standard output and standard error, for whoever started it.
pub(super) fn piped() -> (Stdio, Stdio) {
    (Stdio::piped(), Stdio::piped())
}

/// Serves what listens at a command's gate.
pub(super) type Opener<'a> = Box<dyn FnOnce(TcpListener) + Send + 'a>;

/// A launcher in its confinement, which waits for its job. Dropping it tells it to end what it has begun.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) control: UnixStream,
}

impl Started {
    /// Starts one with this whole environment.
    pub(super) async fn spawn(
        program: &Path,
        environment: &[(OsString, OsString)],
        (stdout, stderr): (Stdio, Stdio),
        confinement: &Confinement,
        by: Instant,
    ) -> io::Result<Self> {
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
        let mut started = Self { child, control: UnixStream::from_std(ours)? };
        timeout_at(by, started.order(confinement)).await??;
        Ok(started)
    }

    /// Whether it can still be given a job.
    pub(super) fn waits(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    async fn order(&mut self, order: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        self.control.write_all(&line).await
    }

    /// Gives it its job and, when all is ready for the programs, the word to begin. Returns the beginning of its
    /// report. If this fails or is dropped, nothing has begun.
    pub(super) async fn begin(
        &mut self,
        job: &Job,
        open: Option<Opener<'_>>,
        by: Instant,
    ) -> io::Result<Vec<u8>> {
        let begun = timeout_at(by, self.tell(job, open)).await.unwrap_or_else(|late| Err(late.into()));
        if begun.is_err() {
            self.end();
        }
        begun
    }

    async fn tell(&mut self, job: &Job, open: Option<Opener<'_>>) -> io::Result<Vec<u8>> {
        self.order(job).await?;
        let control = &mut self.control;
        if let Some(open) = open {
            let passed = control.async_io(Interest::READABLE, || sandbox::receive(&control)).await?;
            open(passed.map(TcpListener::from).ok_or(io::ErrorKind::ConnectionAborted)?);
        }
        let said = control.read_u8().await?;
        if said == WORD {
            control.write_all(&[WORD]).await?;
        }
        Ok(vec![said])
    }

    /// A program may have stopped its launcher, which must run to end it.
    pub(super) fn resume(&self) {
        if let Some(pid) = self.pid() {
            // It may have ended.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Ends it from here, and all below it.
    pub(super) fn end(&mut self) {
        if let Some(pid) = self.pid() {
            tree::kill_descendants(pid);
        }
        // It may have ended.
        let _ = self.child.start_kill();
    }

    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }

    /// How it ended, which made no report.
    pub(super) async fn reap(mut self) -> Exit {
        match timeout(DRAIN_TIME, self.child.wait()).await {
            Ok(Ok(status)) => match std::os::unix::process::ExitStatusExt::signal(&status) {
                Some(signal) => Exit::Signalled(signal),
                None => Exit::NotStarted(format!("the launcher gave up: {status}")),
            },
            Ok(Err(error)) => Exit::NotStarted(format!("the launcher: {error}")),
            Err(_) => Exit::NotStarted("the launcher does not end".to_owned()),
        }
    }
}

/// Starts a command without programs: says which layer it cannot have. That it took too long says nothing of layers.
pub(super) async fn try_confinement(
    program: &Path,
    environment: &[(OsString, OsString)],
    confinement: Confinement,
    access: Access,
    time: Duration,
) -> io::Result<Result<(), Refused>> {
    let job = Job { spec: Spec { access, ..Spec::nothing() }, interpreter: false };
    let by = Instant::now() + time;
    let attempt = async {
        let mut started = Started::spawn(program, environment, piped(), &confinement, by).await?;
        let mut report = started.begin(&job, None, by).await?;
        timeout_at(by, started.control.read_to_end(&mut report)).await??;
        Ok::<Report, io::Error>(serde_json::from_slice(&report)?)
    };
    let failed =
        |error: io::Error| Refused { layer: Layer::NoNewPrivileges, why: format!("the launcher: {error}") };
    Ok(match attempt.await {
        Ok(Report::Exits(_)) => Ok(()),
        Ok(Report::Refused(refused)) => Err(refused),
        Ok(Report::Lost) => Err(failed(io::ErrorKind::BrokenPipe.into())),
        Err(late) if late.kind() == io::ErrorKind::TimedOut => return Err(late),
        Err(error) => Err(failed(error)),
    })
}
