//! The launcher's side: a single-threaded process that starts the programs, outlives them, and leaves nothing
//! behind.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, WaitStatus, getpid, set_child_subreaper, setsid},
    thread::set_no_new_privs,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::{Exit, SPEC_BYTES, Spec, tree};

/// The first argument of a process that is to call [`main`].
pub const ARG: &str = "__launch";

/// How long descendants may take to vanish once they are killed.
const KILL_TIME: Duration = Duration::from_secs(10);

/// Runs this process as a launcher, with the executor at the other end of its standard input.
///
/// Call it before anything else when the first argument is [`ARG`]: it needs a process without threads.
pub fn main() -> ExitCode {
    match launch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn launch() -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    contain()?;
    let mut signals = Signals::register()?;
    let spec = read_spec(&control)?;

    let mut stages = start(&spec);
    while stages.iter().any(Stage::runs) {
        tree::reap(|pid, status| record(&mut stages, pid, status))?;
        if stages.iter().any(Stage::runs) && signals.wait(Some(&control), None)? == Wake::Stop {
            break;
        }
    }
    tree::end_all(
        Instant::now() + KILL_TIME,
        |pid, status| record(&mut stages, pid, status),
        || drop(signals.wait(None, Some(Duration::from_millis(10)))),
    )?;

    let exits: Vec<Exit> = stages.into_iter().map(Stage::into_exit).collect();
    control.write_all(&serde_json::to_vec(&exits)?)
}

/// Takes this process out of its parent's session, and makes it the parent of everything that it will start.
fn contain() -> io::Result<()> {
    match setsid() {
        // It leads its group already.
        Ok(_) | Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    set_child_subreaper(Some(getpid()))?;
    set_no_new_privs(true)?;
    close_fds::set_fds_cloexec(3, &[]);
    Ok(())
}

fn read_spec(control: &UnixStream) -> io::Result<Spec> {
    let mut line = Vec::new();
    BufReader::new(control).take(SPEC_BYTES).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

enum Stage {
    Running(Pid),
    Ended(Exit),
}

impl Stage {
    fn runs(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    fn into_exit(self) -> Exit {
        match self {
            Self::Running(_) => Exit::NotStarted("its end was not seen".to_owned()),
            Self::Ended(exit) => exit,
        }
    }
}

/// Starts the stages from first to last. One that fails to start leaves its neighbours an ended pipe.
fn start(spec: &Spec) -> Vec<Stage> {
    let mut stages = Vec::new();
    let mut input = Stdio::null();
    for (index, arguments) in spec.pipeline.iter().enumerate() {
        let last = index + 1 == spec.pipeline.len();
        let (stage, next) = match start_one(arguments, input, last, spec.merge_stderr) {
            Ok((pid, next)) => (Stage::Running(pid), next),
            Err(error) => {
                let name = arguments.first().map_or("", String::as_str);
                (Stage::Ended(Exit::NotStarted(format!("{name}: {error}"))), Stdio::null())
            }
        };
        stages.push(stage);
        input = next;
    }
    stages
}

fn start_one(arguments: &[String], input: Stdio, last: bool, merge: bool) -> io::Result<(Pid, Stdio)> {
    let (program, rest) = arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(rest).stdin(input).current_dir("/");
    if merge {
        command.stderr(io::stdout().as_fd().try_clone_to_owned()?);
    }
    let next = if last {
        Stdio::null()
    } else {
        let (reader, writer) = io::pipe()?;
        command.stdout(writer);
        Stdio::from(reader)
    };
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    Ok((pid, next))
}

fn record(stages: &mut [Stage], pid: Pid, status: WaitStatus) {
    let exit = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Exited(code),
        (None, Some(signal)) => Exit::Signalled(signal),
        (None, None) => return,
    };
    if let Some(stage) = stages.iter_mut().find(|stage| matches!(stage, Stage::Running(own) if *own == pid)) {
        *stage = Stage::Ended(exit);
    }
}

/// Signals, as sockets that `poll` can wait for.
struct Signals {
    child: UnixStream,
    stop: UnixStream,
}

#[derive(PartialEq, Eq)]
enum Wake {
    /// A child ended, or the time is up.
    Look,
    /// A signal asks for the end, or the executor is gone.
    Stop,
}

impl Signals {
    fn register() -> io::Result<Self> {
        let (child, on_child) = UnixStream::pair()?;
        let (stop, on_stop) = UnixStream::pair()?;
        child.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, on_child)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, on_stop.try_clone()?)?;
        }
        Ok(Self { child, stop })
    }

    /// Waits for a child's end, and with `control` for a request to stop as well.
    fn wait(&mut self, control: Option<&UnixStream>, at_most: Option<Duration>) -> io::Result<Wake> {
        let timeout = at_most.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = vec![PollFd::new(&self.child, PollFlags::IN)];
        if let Some(control) = control {
            fds.push(PollFd::new(&self.stop, PollFlags::IN));
            fds.push(PollFd::new(control, PollFlags::IN));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stop = fds.iter().skip(1).any(|fd| !fd.revents().is_empty());
        drop(fds);
        // What is left in the socket only makes the next wait short.
        let _ = self.child.read(&mut [0; 256]);
        Ok(if stop { Wake::Stop } else { Wake::Look })
    }
}
