//! The programs of one job: started from first to last, and how each ended.

use std::{
    io,
    os::fd::AsFd as _,
    process::{Command, Stdio},
};

use rustix::process::{Pid, WaitStatus};

use super::{Exit, Spec};
use crate::sandbox::Place;

/// Programs, in the order of the pipeline.
#[derive(Debug)]
pub(super) struct Stages(Vec<Stage>);

#[derive(Debug)]
enum Stage {
    Running(Pid),
    Ended(Exit),
}

impl Stages {
    /// Starts the programs from first to last. One that fails to start leaves its neighbours an ended pipe.
    pub(super) fn start(spec: &Spec, place: &Place) -> Self {
        let mut stages = Vec::new();
        let mut input = Stdio::null();
        for (index, arguments) in spec.pipeline.iter().enumerate() {
            let last = index + 1 == spec.pipeline.len();
            let (stage, next) = match start_one(arguments, place, input, last, spec.merge_stderr) {
                Ok((pid, next)) => (Stage::Running(pid), next),
                Err(error) => {
                    let name = arguments.first().map_or("", String::as_str);
                    (Stage::Ended(Exit::NotStarted(format!("{name}: {error}"))), Stdio::null())
                }
            };
            stages.push(stage);
            input = next;
        }
        Self(stages)
    }

    /// Whether one still runs.
    pub(super) fn run(&self) -> bool {
        self.0.iter().any(|stage| matches!(stage, Stage::Running(_)))
    }

    /// Takes note of the end of a process, if it is one of them.
    pub(super) fn record(&mut self, pid: Pid, status: WaitStatus) {
        let Some(exit) = exit(status) else { return };
        if let Some(stage) =
            self.0.iter_mut().find(|stage| matches!(stage, Stage::Running(own) if *own == pid))
        {
            *stage = Stage::Ended(exit);
        }
    }

    /// How they ended.
    pub(super) fn exits(self) -> Vec<Exit> {
        let exit = |stage| match stage {
            Stage::Running(_) => Exit::NotStarted("its end was not seen".to_owned()),
            Stage::Ended(exit) => exit,
        };
        self.0.into_iter().map(exit).collect()
    }
}

/// How a process ended, if it did.
fn exit(status: WaitStatus) -> Option<Exit> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Exit::Exited(code)),
        (None, Some(signal)) => Some(Exit::Signalled(signal)),
        (None, None) => None,
    }
}

fn start_one(
    arguments: &[String],
    place: &Place,
    input: Stdio,
    last: bool,
    merge: bool,
) -> io::Result<(Pid, Stdio)> {
    let (program, rest) = arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(rest).stdin(input).current_dir(place.start.as_deref().unwrap_or("/".as_ref()));
    if let Some(work) = &place.work {
        command.env("TMPDIR", work);
    }
    command.envs(place.variables.iter().map(|(name, value)| (name, value)));
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
    Ok((Pid::from_child(&child), next))
}
