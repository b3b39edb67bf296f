//! One way to run programs, for all tools: a launcher per execution that owns the whole process tree.
//!
//! The executor starts the launcher with one end of a socket as its standard input, writes the confinement and a [`Job`]
//! to it, each a line, and reads a [`Report`] from it. The two need not come together: a launcher that is
//! started ahead waits for its job. The open socket is the launcher's right to live: when the executor closes its
//! end, on purpose or by dying, the launcher kills everything below it. (A parent-death signal would follow
//! the thread that spawned it, and a runtime's threads come and go.)
//!
//! The launcher starts itself once more within the sandbox, as the parent of the programs. That process dies with
//! the launcher, and where it has a process namespace all programs die with it. When all is ready for the programs it
//! says so with a [`WORD`], which the launcher passes on, and waits for the executor's before it starts them: what was
//! not given the word in time has certainly not begun.

use serde::{Deserialize, Serialize};

use crate::sandbox::{Access, Network, Refused, View};

mod capture;
mod inside;
mod interpreter;
pub mod launcher;
mod memory;
mod meter;
mod spares;
mod stages;
mod start;
mod stream;
mod supervise;
mod tree;

pub(crate) use capture::{Capture, whole_characters};
pub(crate) use interpreter::{Interpreter, Life};
pub(crate) use meter::Meter;
pub(crate) use supervise::{Launcher, Outcome, Source, Trouble, Watch};

/// What to run: one program, or several with each one's output feeding the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// Arguments of each program, its name first.
    pub(crate) pipeline: Vec<Vec<String>>,
    /// Standard error goes where standard output goes, so that their order is kept.
    pub(crate) merge_stderr: bool,
    /// What it sees, reaches and is given.
    #[serde(default)]
    pub(crate) access: Access,
}

impl Spec {
    /// One program whose streams are kept apart, with all that the executor itself may do.
    pub(crate) fn program(arguments: Vec<String>) -> Self {
        Self { pipeline: vec![arguments], merge_stderr: false, access: Access::default() }
    }

    /// No program at all.
    fn nothing() -> Self {
        Self { pipeline: Vec::new(), merge_stderr: false, access: Access::default() }
    }

    /// The same with no more than this.
    pub(crate) fn confined(self, view: View, network: Network) -> Self {
        Self { access: Access { view, network, ..self.access }, ..self }
    }
}

/// What a launcher is told.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    #[serde(flatten)]
    spec: Spec,
    /// Whether the process within becomes an interpreter, on its standard output, and runs no program.
    #[serde(default)]
    interpreter: bool,
}

/// What a launcher tells.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    /// How each program ended, in the order of the pipeline.
    Exits(Vec<Exit>),
    /// Nothing was started.
    Refused(Refused),
    /// How the programs ended is not known.
    Lost,
}

/// How one program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// It could not be started.
    NotStarted(String),
}

/// What says that all is ready, and what allows to begin. A report may begin with it.
const WORD: u8 = b'\n';

/// The longest line that a launcher reads.
const ORDER_BYTES: u64 = 4 << 20;
