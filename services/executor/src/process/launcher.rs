//! The launcher's side: a single-threaded process that starts the programs, outlives them, and leaves nothing
//! behind.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _, Write as _},
    net::Shutdown,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use nix::unistd::{dup2_stderr, dup2_stdout};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, getpid, kill_process, set_child_subreaper, setsid},
    thread::{set_name, set_no_new_privs},
};
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::{Exit, Job, ORDER_BYTES, Report, WORD, inside, tree};
use crate::sandbox::{self, Confinement};

/// The first argument of a process that is to call [`main`].
pub const ARG: &str = "__launch";
/// The second argument of the process within the sandbox.
const INSIDE: &str = "inside";

/// How long descendants may take to vanish once they are killed.
const KILL_TIME: Duration = Duration::from_secs(10);

/// Runs this process as a launcher, with the executor at the other end of its standard input.
///
/// Call it before anything else when the first argument is [`ARG`]: it needs a process without threads.
pub fn main() -> ExitCode {
    let is_inside = std::env::args_os().nth(2).is_some_and(|second| second == INSIDE);
    match if is_inside { inside::main() } else { launch() } {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn launch() -> io::Result<()> {
    let control = control()?;
    contain()?;
    let mut signals = Signals::all()?;
    let mut orders = BufReader::new(&control);
    let (confinement, text) = order::<Confinement>(&mut orders)?;
    // What was refused is told whoever gives it a job.
    let inner = match sandbox::separate(&confinement) {
        Ok(()) => Ok(Inner::start(&text).and_then(leave_output)?),
        Err(refused) => Err(refused),
    };
    let (job, text) = job(&mut orders)?;
    let open = |inner| sandbox::open_gate(&confinement, &job.spec.access, &control).map(|()| inner);
    let report = match inner.and_then(open) {
        Ok(inner) => inner.hold(&job, &text, &control, &mut signals)?,
        Err(refused) => Report::Refused(refused),
    };
    (&control).write_all(&serde_json::to_vec(&report)?)?;
    // Nobody needs to wait for the end of this process.
    control.shutdown(Shutdown::Write)
}

/// The socket to whoever started this process.
pub(super) fn control() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
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

/// Leaves standard output and error to the process within: they end when it and its programs have ended.
fn leave_output(inner: Inner) -> io::Result<Inner> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    dup2_stdout(&nowhere)?;
    dup2_stderr(&nowhere)?;
    Ok(inner)
}

/// The job, for which it may have to wait. Whoever lists processes sees by their names which of them do.
pub(super) fn job(orders: &mut impl BufRead) -> io::Result<(Job, Vec<u8>)> {
    set_name(c"sleuth-waits")?;
    let job = order(orders)?;
    set_name(c"sleuth-runs")?;
    Ok(job)
}

/// What a line says, also as it was written.
pub(super) fn order<T: DeserializeOwned>(orders: &mut impl BufRead) -> io::Result<(T, Vec<u8>)> {
    let mut line = Vec::new();
    orders.take(ORDER_BYTES).read_until(b'\n', &mut line)?;
    Ok((serde_json::from_slice(&line)?, line))
}

/// The process within, and the socket to it.
struct Inner {
    child: Pid,
    socket: UnixStream,
}

impl Inner {
    /// Starts it, with the confinement as it was written.
    fn start(confinement: &[u8]) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = Command::new("/proc/self/exe")
            .args([ARG, INSIDE])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map(|child| Pid::from_child(&child))?;
        let inner = Self { child, socket };
        inner.tell(confinement);
        Ok(inner)
    }

    fn tell(&self, bytes: &[u8]) {
        // It may have ended already: then its status tells.
        let _ = (&self.socket).write_all(bytes);
    }

    /// Gives it its job, waits for its end or for the order to end it, and leaves nothing of it.
    fn hold(
        mut self,
        job: &Job,
        text: &[u8],
        control: &UnixStream,
        signals: &mut Signals,
    ) -> io::Result<Report> {
        self.tell(text);
        let mut report = Vec::new();
        let ended = self.wait(control, &mut report, signals)?;
        if !ended {
            // It may end in this moment.
            let _ = kill_process(self.child, Signal::KILL);
        }
        let pause = || drop(signals.wait(&[], Some(Duration::from_millis(10))));
        tree::end_all(Instant::now() + KILL_TIME, |_, _| {}, pause)?;

        self.socket.set_nonblocking(true)?;
        let _ = self.socket.read_to_end(&mut report);
        let killed = || Report::Exits(vec![Exit::Signalled(Signal::KILL.as_raw()); job.spec.pipeline.len()]);
        Ok(serde_json::from_slice(&report).unwrap_or_else(|_| if ended { Report::Lost } else { killed() }))
    }

    /// Waits for its end, and passes words between it and the executor. False if the order to end it came first.
    /// `said` is the beginning of what it says.
    fn wait(&self, mut control: &UnixStream, said: &mut Vec<u8>, signals: &mut Signals) -> io::Result<bool> {
        let mut both = vec![control, &self.socket];
        loop {
            let mut ended = false;
            tree::reap(|pid, _| ended |= pid == self.child)?;
            if ended {
                return Ok(true);
            }
            match signals.wait(&both, None)? {
                Wake::Look => {}
                Wake::Stop => return Ok(false),
                Wake::Heard(0) => {
                    if !matches!(control.read(&mut [0]), Ok(1)) {
                        return Ok(false);
                    }
                    self.tell(&[WORD]);
                }
                Wake::Heard(_) => {
                    // Either may be gone: then there is an end or an order to end.
                    let _ = (&self.socket).take(1).read_to_end(said);
                    if *said == [WORD] {
                        let _ = control.write_all(&[WORD]);
                    }
                    both.truncate(1);
                }
            }
        }
    }
}

/// Within: says that all is ready, and waits until the programs may begin.
pub(super) fn ready(mut control: &UnixStream) -> io::Result<()> {
    control.write_all(&[WORD])?;
    control.read_exact(&mut [0])
}

/// Signals, as sockets that `poll` can wait for.
pub(super) struct Signals {
    child: UnixStream,
    stop: Option<UnixStream>,
}

#[derive(PartialEq, Eq)]
pub(super) enum Wake {
    /// A child ended, or the time is up.
    Look,
    /// A signal asks for the end.
    Stop,
    /// This socket has something to be read, or was closed.
    Heard(usize),
}

impl Signals {
    /// Ends of children, and requests to stop.
    fn all() -> io::Result<Self> {
        let (stop, on_stop) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, on_stop.try_clone()?)?;
        }
        Ok(Self { stop: Some(stop), ..Self::of_children()? })
    }

    /// Ends of children only: nobody within the sandbox has a right to ask for more.
    pub(super) fn of_children() -> io::Result<Self> {
        let (child, on_child) = UnixStream::pair()?;
        child.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, on_child)?;
        Ok(Self { child, stop: None })
    }

    /// Waits for a child's end, and where there are sockets also for these and for a request to stop.
    pub(super) fn wait(&mut self, sockets: &[&UnixStream], at_most: Option<Duration>) -> io::Result<Wake> {
        let timeout = at_most.and_then(|time| Timespec::try_from(time).ok());
        let stop = self.stop.as_ref().filter(|_| !sockets.is_empty());
        let watched = stop.into_iter().chain(sockets.iter().copied());
        let mut fds: Vec<_> =
            [&self.child].into_iter().chain(watched).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let heard = fds.iter().skip(1).position(|fd| !fd.revents().is_empty());
        let stops = usize::from(stop.is_some());
        drop(fds);
        // What is left in the socket only makes the next wait short.
        let _ = self.child.read(&mut [0; 256]);
        Ok(match heard {
            None => Wake::Look,
            Some(first) => first.checked_sub(stops).map_or(Wake::Stop, Wake::Heard),
        })
    }
}
