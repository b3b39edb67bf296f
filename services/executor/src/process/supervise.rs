//! The executor's side: start a launcher, collect what its programs print, end it when told to.

use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::net},
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    process::{Child, Command},
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{Capture, Exit, Meter, Spec, capture::whole_characters, launcher, memory, tree};
use crate::redact::Masker;

/// What is kept of standard error where it is apart: messages, not data.
const STDERR_BYTES: usize = 64 << 10;
/// How long a launcher may take to read its spec.
const START_TIME: Duration = Duration::from_secs(10);
/// How long a launcher that was told to stop may take before it is ended from here.
const STOP_TIME: Duration = Duration::from_secs(12);
/// How long a pipe is read after the launcher's report. Everything that could hold it open is dead by then.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Starts programs under launchers.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    /// The program that becomes a launcher when its first argument is [`launcher::ARG`].
    pub(crate) program: PathBuf,
    /// The whole environment of what is started.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// Where output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdout,
    Stderr,
}

/// What is done with output on its way.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Takes the secrets out of it.
    pub(crate) masker: Option<Masker>,
    pub(crate) meter: Option<Arc<Meter>>,
}

/// What went wrong with a launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It did not start in time. Nothing of the spec ran.
    Late(Duration),
    /// It ended without a report: how the programs ended is not known.
    Lost,
}

/// What came of a [`Spec`].
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How each program ended, in the order of the pipeline.
    pub(crate) exits: Vec<Exit>,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    /// How many secrets were masked.
    pub(crate) masked: u64,
    pub(crate) trouble: Option<Trouble>,
    /// Whether the kernel ended programs because memory ran out.
    pub(crate) out_of_memory: bool,
}

impl Outcome {
    fn not_started(error: &io::Error, trouble: Option<Trouble>) -> Self {
        Self {
            masked: 0,
            trouble,
            out_of_memory: false,
            exits: vec![Exit::NotStarted(format!("the launcher: {error}"))],
            stdout: Capture::new(0),
            stderr: Capture::new(0),
        }
    }
}

impl Launcher {
    /// Runs `spec` to its end, or until `stop`; either way nothing of it is left when this returns. When the
    /// future is dropped, the launcher ends everything by itself.
    ///
    /// Keeps `keep` bytes of standard output; `seen` gets all of them with their offset.
    pub(crate) async fn run(
        &self,
        spec: &Spec,
        keep: usize,
        stop: &CancellationToken,
        seen: impl FnMut(Source, u64, &[u8]),
    ) -> Outcome {
        self.run_watched(spec, keep, stop, Watch::default(), seen).await
    }

    /// The same; what is kept and seen is what `watch` leaves of the output.
    pub(crate) async fn run_watched(
        &self,
        spec: &Spec,
        keep: usize,
        stop: &CancellationToken,
        mut watch: Watch,
        mut seen: impl FnMut(Source, u64, &[u8]),
    ) -> Outcome {
        let kills_before = memory::kills();
        let (mut child, mut control) = match timeout(START_TIME, self.start(spec)).await {
            Ok(Ok(started)) => started,
            Ok(Err(error)) => return Outcome::not_started(&error, None),
            Err(late) => return Outcome::not_started(&late.into(), Some(Trouble::Late(START_TIME))),
        };
        let mut stdout = Stream::new(Source::Stdout, child.stdout.take(), keep);
        let mut stderr = Stream::new(Source::Stderr, child.stderr.take(), keep.min(STDERR_BYTES));
        let mut report = Vec::new();
        let mut phase = Phase::Running;

        while phase != Phase::Reported || stdout.is_open() || stderr.is_open() {
            tokio::select! {
                () = stdout.read(), if stdout.is_open() => stdout.deliver(&mut watch, &mut seen),
                () = stderr.read(), if stderr.is_open() => stderr.deliver(&mut watch, &mut seen),
                read = control.read_buf(&mut report), if phase != Phase::Reported => {
                    if !matches!(read, Ok(1..)) {
                        phase = Phase::Reported;
                    }
                }
                () = stop.cancelled(), if phase == Phase::Running => {
                    phase = Phase::Stopping(Instant::now() + STOP_TIME);
                    resume(&child);
                    let _ = control.shutdown().await;
                }
                () = overdue(phase) => {
                    phase = Phase::Reported;
                    end_from_here(&mut child);
                }
            }
            if phase == Phase::Reported {
                stdout.close_soon();
                stderr.close_soon();
            }
        }
        let masked = watch.masker.map_or(0, |mut masker| {
            let (rest, errors) = masker.finish();
            stdout.show(&rest, &mut seen);
            stderr.show(&errors, &mut seen);
            masker.spans()
        });
        let exits: Vec<_> = serde_json::from_slice(&report).unwrap_or_default();
        let trouble = exits.is_empty().then_some(Trouble::Lost);
        let exits = reap(child, exits).await;
        Outcome {
            out_of_memory: memory::explains(&exits, kills_before),
            exits,
            stdout: stdout.capture,
            stderr: stderr.capture,
            masked,
            trouble,
        }
    }

    async fn start(&self, spec: &Spec) -> io::Result<(Child, UnixStream)> {
        let (ours, theirs) = net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(&self.program)
            .arg(launcher::ARG)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut control = UnixStream::from_std(ours)?;
        let mut text = serde_json::to_vec(spec)?;
        text.push(b'\n');
        control.write_all(&text).await?;
        Ok((child, control))
    }
}

/// Waits for the launcher, which has reported or was killed. Without a report its own end counts.
async fn reap(mut child: Child, exits: Vec<Exit>) -> Vec<Exit> {
    let ended = timeout(DRAIN_TIME, child.wait()).await;
    if !exits.is_empty() {
        return exits;
    }
    vec![match ended {
        Ok(Ok(status)) => match std::os::unix::process::ExitStatusExt::signal(&status) {
            Some(signal) => Exit::Signalled(signal),
            None => Exit::NotStarted(format!("the launcher gave up: {status}")),
        },
        Ok(Err(error)) => Exit::NotStarted(format!("the launcher: {error}")),
        Err(_) => Exit::NotStarted("the launcher does not end".to_owned()),
    }]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Stopping(Instant),
    Reported,
}

async fn overdue(phase: Phase) {
    match phase {
        Phase::Stopping(deadline) => sleep_until(deadline).await,
        Phase::Running | Phase::Reported => std::future::pending().await,
    }
}

fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// A program may have stopped its launcher, which must run to end it.
fn resume(child: &Child) {
    if let Some(pid) = pid(child) {
        let _ = kill_process(pid, Signal::CONT);
    }
}

fn end_from_here(child: &mut Child) {
    if let Some(pid) = pid(child) {
        tree::kill_descendants(pid);
    }
    let _ = child.start_kill();
}

/// One stream of the programs' output.
struct Stream<R> {
    source: Source,
    pipe: Option<R>,
    deadline: Option<Instant>,
    /// Bytes that were read; between reads, at most the start of one character.
    buffer: Vec<u8>,
    offset: u64,
    capture: Capture,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn new(source: Source, pipe: Option<R>, keep: usize) -> Self {
        Self {
            source,
            pipe,
            deadline: None,
            buffer: Vec::with_capacity(16 << 10),
            offset: 0,
            capture: Capture::new(keep),
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    fn close_soon(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + DRAIN_TIME);
    }

    /// Reads once. Loses nothing when it is dropped.
    async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let read = pipe.read_buf(&mut self.buffer);
        let read = match self.deadline {
            None => read.await,
            Some(deadline) => timeout_at(deadline, read).await.unwrap_or(Ok(0)),
        };
        if !matches!(read, Ok(1..)) {
            self.pipe = None;
        }
    }

    /// Hands on what was read, except the start of a character whose rest may follow.
    fn deliver(&mut self, watch: &mut Watch, seen: &mut impl FnMut(Source, u64, &[u8])) {
        let ready = if self.is_open() { whole_characters(&self.buffer) } else { self.buffer.len() };
        let bytes: Vec<_> = self.buffer.drain(..ready).collect();
        if let Some(meter) = &watch.meter {
            meter.add(bytes.len());
        }
        match &mut watch.masker {
            Some(masker) => self.show(&masker.push(self.source, &bytes), seen),
            None => self.show(&bytes, seen),
        }
    }

    fn show(&mut self, bytes: &[u8], seen: &mut impl FnMut(Source, u64, &[u8])) {
        if !bytes.is_empty() {
            self.capture.push(bytes);
            seen(self.source, self.offset, bytes);
            self.offset += bytes.len() as u64;
        }
    }
}
