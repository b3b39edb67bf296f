//! An interpreter: a launcher whose process within becomes one, instead of the parent of programs.

use std::{
    io,
    os::{fd::OwnedFd, unix::net},
    process::Stdio,
};

use tokio::{net::UnixStream, process::Child, time::timeout};

use super::{
    Job, Launcher, Spec,
    start::{START_TIME, start},
};
use crate::sandbox::{Access, Network, Prepared, View};

/// A running interpreter.
#[derive(Debug)]
pub(crate) struct Interpreter {
    /// Where it listens and speaks.
    pub(crate) channel: UnixStream,
    pub(crate) life: Life,
}

/// What keeps an interpreter alive. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Life {
    _control: UnixStream,
    _child: Child,
    _prepared: Prepared,
}

impl Launcher {
    /// Starts one that sees programs and reaches nothing.
    pub(crate) async fn interpreter(&self) -> io::Result<Interpreter> {
        let access = Access { view: View::Private, network: Network::None, ..Access::default() };
        let prepared = self.sandbox.prepare(&access)?;
        let spec = Spec { access, ..Spec::nothing() };
        let job = Job { spec, confinement: prepared.confinement.clone(), interpreter: true };
        let (ours, theirs) = net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let output = (Stdio::from(OwnedFd::from(theirs)), Stdio::null());
        let (child, control) = timeout(START_TIME, start(self.program(), &[], &job, output, None)).await??;
        let life = Life { _control: control, _child: child, _prepared: prepared };
        Ok(Interpreter { channel: UnixStream::from_std(ours)?, life })
    }
}
