//! The executor's side: start a launcher, collect what its programs print, end it when told to.

use std::{
    ffi::OsString,
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Capture, Exit, Job, Meter, Report, Spec, memory,
    start::{Opener, START_TIME, piped, start, try_confinement},
    stream::{DRAIN_TIME, Stream},
    tree,
};
use crate::redact::Masker;
use crate::sandbox::{Access, Layer, Level, Network, Prepared, Sandbox, Setting, Unavailable, View};

/// What is kept of standard error where it is apart: messages, not data.
const STDERR_BYTES: usize = 64 << 10;
/// How long a launcher that was told to stop may take before it is ended from here.
const STOP_TIME: Duration = Duration::from_secs(12);

/// Starts programs under launchers.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    /// The program that becomes a launcher when its first argument is [`launcher::ARG`].
    program: PathBuf,
    /// The whole environment of what is started.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What the operator's own programs get beside it.
    pub(crate) for_operator: Vec<(OsString, OsString)>,
    pub(crate) sandbox: Sandbox,
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
    /// The sandbox that they had.
    pub(crate) level: Level,
    pub(crate) layers: Vec<&'static str>,
    /// Whether the kernel ended programs because memory ran out.
    pub(crate) out_of_memory: bool,
}

impl Outcome {
    /// Nothing ran, for this reason.
    pub(crate) fn not_started(why: String, trouble: Option<Trouble>) -> Self {
        Self {
            masked: 0,
            trouble,
            exits: vec![Exit::NotStarted(why)],
            stdout: Capture::new(0),
            stderr: Capture::new(0),
            level: Level::None,
            layers: Vec::new(),
            out_of_memory: false,
        }
    }
}

/// A port that a command reaches although it has no network.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) port: u16,
    /// Where it listens, unless it is opened in the command's own network.
    listener: Option<TcpListener>,
}

/// A gate with what is to be done with what listens there, before the command starts.
pub(crate) struct Served<'a> {
    gate: Gate,
    serve: Opener<'a>,
}

impl Gate {
    pub(crate) fn served_by<'a>(self, serve: impl FnOnce(TcpListener) + Send + 'a) -> Served<'a> {
        Served { gate: self, serve: Box::new(serve) }
    }
}

/// The port of gates in networks of their own.
const GATE: u16 = 6443;

impl Launcher {
    /// Finds out what sandbox there can be, and whether it is enough.
    pub(crate) async fn probe(
        program: PathBuf,
        environment: Vec<(OsString, OsString)>,
        setting: Setting,
    ) -> Result<Self, Unavailable> {
        let attempt = |confinement, access| try_confinement(&program, &environment, confinement, access);
        let sandbox = Sandbox::probe(setting, attempt).await?;
        Ok(Self { program, environment, for_operator: Vec::new(), sandbox })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// A gate for one command with this view.
    pub(crate) fn gate(&self, view: View) -> io::Result<Gate> {
        if self.sandbox.separates_network(view) {
            return Ok(Gate { port: GATE, listener: None });
        }
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        Ok(Gate { port: listener.local_addr()?.port(), listener: Some(listener) })
    }

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
        watch: Watch,
        seen: impl FnMut(Source, u64, &[u8]),
    ) -> Outcome {
        self.run_started(spec, None, keep, stop, watch, seen).await
    }

    /// The same for a command whose only network is a gate, unless it has the operator's view.
    pub(crate) async fn run_gated(
        &self,
        spec: &Spec,
        served: Served<'_>,
        keep: usize,
        stop: &CancellationToken,
        watch: Watch,
        seen: impl FnMut(Source, u64, &[u8]),
    ) -> Outcome {
        let Served { gate: Gate { port, listener }, serve } = served;
        let network = match spec.access.view {
            View::Private | View::Host => Network::Gate(port),
            View::Operator => spec.access.network,
        };
        let access = Access { network, ..spec.access.clone() };
        let spec = Spec { access, ..spec.clone() };
        match listener {
            Some(listener) => {
                serve(listener);
                self.run_started(&spec, None, keep, stop, watch, seen).await
            }
            None => self.run_started(&spec, Some(serve), keep, stop, watch, seen).await,
        }
    }

    fn environment(&self, view: View) -> Vec<(OsString, OsString)> {
        match view {
            View::Private | View::Host => self.environment.clone(),
            View::Operator => [&self.for_operator[..], &self.environment].concat(),
        }
    }

    async fn run_started(
        &self,
        spec: &Spec,
        open: Option<Opener<'_>>,
        keep: usize,
        stop: &CancellationToken,
        mut watch: Watch,
        mut seen: impl FnMut(Source, u64, &[u8]),
    ) -> Outcome {
        let prepared = match self.sandbox.prepare(&spec.access) {
            Ok(prepared) => prepared,
            Err(error) => return Outcome::not_started(format!("the sandbox: {error}"), None),
        };
        let job = Job { spec: spec.clone(), confinement: prepared.confinement.clone(), interpreter: false };
        let kills_before = memory::kills();
        let environment = self.environment(spec.access.view);
        let started = timeout(START_TIME, start(&self.program, &environment, &job, piped(), open)).await;
        let (mut child, mut control) = match started {
            Ok(Ok(started)) => started,
            Ok(Err(error)) => return Outcome::not_started(format!("the launcher: {error}"), None),
            Err(late) => {
                let trouble = Some(Trouble::Late(START_TIME));
                return Outcome::not_started(format!("the launcher: {late}"), trouble);
            }
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
        let exits = match serde_json::from_slice(&report) {
            Ok(Report::Exits(exits)) => exits,
            Ok(Report::Refused(refused)) => vec![Exit::NotStarted(refused.to_string())],
            Ok(Report::Lost) | Err(_) => Vec::new(),
        };
        let trouble = exits.is_empty().then_some(Trouble::Lost);
        let exits = reap(child, exits).await;
        let Prepared { confinement, level, group, .. } = prepared;
        Outcome {
            out_of_memory: match group {
                Some(group) => group.ran_out_of_memory(),
                None => memory::explains(&exits, kills_before),
            },
            exits,
            masked,
            trouble,
            stdout: stdout.capture,
            stderr: stderr.capture,
            level,
            layers: confinement.layers.into_iter().map(Layer::name).collect(),
        }
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
