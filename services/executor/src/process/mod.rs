//! One way to run programs, for all tools: a launcher per execution that owns the whole process tree.
//!
//! The executor starts the launcher with one end of a socket as its standard input, writes a [`Spec`] to it
//! and reads a report from it. The open socket is the launcher's right to live: when the executor closes its
//! end, on purpose or by dying, the launcher kills everything below it. (A parent-death signal would follow
//! the thread that spawned it, and a runtime's threads come and go.)

use serde::{Deserialize, Serialize};

mod capture;
pub mod launcher;
mod memory;
mod meter;
mod supervise;
mod tree;

pub(crate) use capture::{Capture, whole_characters};
pub(crate) use meter::Meter;
pub(crate) use supervise::{Launcher, Outcome, Source, Trouble, Watch};

/// What to run: one program, or several with each one's output feeding the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// Arguments of each program, its name first.
    pub(crate) pipeline: Vec<Vec<String>>,
    /// Standard error goes where standard output goes, so that their order is kept.
    pub(crate) merge_stderr: bool,
}

impl Spec {
    /// One program whose streams are kept apart.
    pub(crate) fn program(arguments: Vec<String>) -> Self {
        Self { pipeline: vec![arguments], merge_stderr: false }
    }
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

/// The longest spec that a launcher reads.
const SPEC_BYTES: u64 = 4 << 20;
