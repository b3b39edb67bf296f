//! The process within the sandbox: applies to itself what cannot be applied from outside, and becomes the parent of
//! the programs. Where it has a process namespace it is the first process there, and nothing outlives it.

use std::{
    io::{self, BufReader, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::{
    Job, Report,
    launcher::{self, Signals, Wake},
    stages::Stages,
    tree,
};
use crate::{
    repl,
    sandbox::{self, Confinement},
};

/// Runs the job that the launcher hands in, and reports to it.
pub(super) fn main() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let control = launcher::control()?;
    let mut orders = BufReader::new(&control);
    let (confinement, _) = launcher::order::<Confinement>(&mut orders)?;
    let joined = sandbox::join(&confinement);
    let (job, _) = launcher::job(&mut orders)?;
    let report = match joined.and_then(|()| sandbox::enter(&confinement, &job.spec.access)) {
        Ok(place) => {
            // A change of identity takes it back.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            launcher::ready(&control)?;
            if job.interpreter {
                return repl::serve(UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?));
            }
            run(&job, &place, &control)?
        }
        Err(refused) => Report::Refused(refused),
    };
    (&control).write_all(&serde_json::to_vec(&report)?)
}

fn run(job: &Job, place: &sandbox::Place, control: &UnixStream) -> io::Result<Report> {
    let mut signals = Signals::of_children()?;
    let mut stages = Stages::start(&job.spec, place);
    while stages.run() {
        tree::reap(|pid, status| stages.record(pid, status))?;
        if stages.run() && signals.wait(&[control], None)? != Wake::Look {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
    Ok(Report::Exits(stages.exits()))
}
