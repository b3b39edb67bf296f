//! The executor's side: start a launcher, collect what its programs print, end it when told to.

use std::{
    ffi::OsString,
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Capture, Exit, Job, Meter, Report, Spec, memory,
    spares::Spares,
    start::{Opener, Started, piped, try_confinement},
    stream::Stream,
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
    /// How long it may take until the programs of a command can begin.
    pub(super) start_time: Duration,
    spares: Arc<Spares>,
}

/// A launcher that waits for its job, in the sandbox that was prepared for it.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) started: Started,
    pub(super) prepared: Prepared,
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
        start_time: Duration,
    ) -> Result<Self, Unavailable> {
        let attempt =
            |confinement, access| try_confinement(&program, &environment, confinement, access, start_time);
        let sandbox = Sandbox::probe(setting, attempt).await?;
        let spares = Arc::default();
        Ok(Self { program, environment, for_operator: Vec::new(), sandbox, start_time, spares })
    }

    /// The same, for a task that the spares own.
    pub(super) fn without_spares(&self) -> Self {
        Self { spares: Arc::default(), ..self.clone() }
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

    /// The same for a command with a gate, which is its only network if it is isolated.
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
        let network = if spec.access.view.isolates() { Network::Gate(port) } else { spec.access.network };
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
            View::Private | View::Host | View::Approved => self.environment.clone(),
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
        let by = Instant::now() + self.start_time;
        let spare = self.spares.take(self, &spec.access);
        let waiting = match spare {
            Some(spare) => Ok(spare),
            None => self.start(&spec.access, by).await,
        };
        let Waiting { mut started, prepared } = match waiting {
            Ok(waiting) => waiting,
            Err(error) => return self.not_started("the sandbox", &error),
        };
        let job = Job { spec: spec.clone(), interpreter: false };
        let kills_before = memory::kills();
        let begun = tokio::select! {
            begun = started.begin(&job, open, by) => begun,
            () = stop.cancelled() => Err(io::ErrorKind::Interrupted.into()),
        };
        let mut report = match begun {
            Ok(report) => report,
            Err(error) => {
                started.end();
                started.reap().await;
                return self.not_started("the launcher", &error);
            }
        };
        if let Some(meter) = &watch.meter {
            meter.begin();
        }
        let mut stdout = Stream::new(Source::Stdout, started.child.stdout.take(), keep);
        let mut stderr = Stream::new(Source::Stderr, started.child.stderr.take(), keep.min(STDERR_BYTES));
        let mut phase = Phase::Running;

        while phase != Phase::Reported || stdout.is_open() || stderr.is_open() {
            tokio::select! {
                () = stdout.read(), if stdout.is_open() => stdout.deliver(&mut watch, &mut seen),
                () = stderr.read(), if stderr.is_open() => stderr.deliver(&mut watch, &mut seen),
                read = started.control.read_buf(&mut report), if phase != Phase::Reported => {
                    if !matches!(read, Ok(1..)) {
                        phase = Phase::Reported;
                    }
                }
                () = stop.cancelled(), if phase == Phase::Running => {
                    phase = Phase::Stopping(Instant::now() + STOP_TIME);
                    started.resume();
                    let _ = started.control.shutdown().await;
                }
                () = overdue(phase) => {
                    phase = Phase::Reported;
                    started.end();
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
            Ok(Report::Exits(exits)) => Some(exits),
            Ok(Report::Refused(refused)) => Some(vec![Exit::NotStarted(refused.to_string())]),
            Ok(Report::Lost) | Err(_) => None,
        };
        let (exits, trouble) = match exits {
            Some(exits) => (exits, None),
            None => (vec![started.reap().await], Some(Trouble::Lost)),
        };
        self.spares.renew(self, &spec.access);
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

    /// Starts a launcher that waits for a job with this access.
    pub(super) async fn start(&self, access: &Access, by: Instant) -> io::Result<Waiting> {
        let prepared = self.prepare(access, by).await?;
        let environment = self.environment(access.view);
        let started = Started::spawn(&self.program, &environment, piped(), &prepared.confinement, by).await?;
        Ok(Waiting { started, prepared })
    }

    /// Prepares a sandbox where blocking is fine.
    pub(super) async fn prepare(&self, access: &Access, by: Instant) -> io::Result<Prepared> {
        let (sandbox, access) = (self.sandbox.clone(), access.clone());
        let prepared = tokio::task::spawn_blocking(move || sandbox.prepare(&access));
        timeout_at(by, prepared).await?.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn not_started(&self, what: &str, error: &io::Error) -> Outcome {
        let late = error.kind() == io::ErrorKind::TimedOut;
        Outcome::not_started(format!("{what}: {error}"), late.then_some(Trouble::Late(self.start_time)))
    }
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
