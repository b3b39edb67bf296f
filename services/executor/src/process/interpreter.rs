//! An interpreter: a launcher whose process within becomes one, instead of the parent of programs.

use std::{
    io,
    os::{fd::OwnedFd, unix::net},
    process::Stdio,
};

use tokio::{net::UnixStream, time::Instant};

use super::{Job, Launcher, Spec, start::Started};
use crate::sandbox::{Access, Layers, Level, Network, Prepared, View};

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
    _launcher: Started,
    prepared: Prepared,
}

impl Life {
    /// The sandbox that it has, and the layers of it.
    pub(crate) fn sandbox(&self) -> (Level, &Layers) {
        (self.prepared.level, &self.prepared.confinement.layers)
    }
}

impl Launcher {
    /// Starts one that sees programs and reaches nothing.
    pub(crate) async fn interpreter(&self) -> io::Result<Interpreter> {
        let access = Access { view: View::Private, network: Network::None, ..Access::default() };
        let by = Instant::now() + self.start_time;
        let prepared = self.prepare(&access, by).await?;
        let job = Job { spec: Spec { access, ..Spec::nothing() }, interpreter: true };
        let (ours, theirs) = net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let output = (Stdio::from(OwnedFd::from(theirs)), Stdio::null());
        let mut launcher = Started::spawn(self.program(), &[], output, &prepared.confinement, by).await?;
        launcher.begin(&job, None, by).await?;
        let life = Life { _launcher: launcher, prepared };
        Ok(Interpreter { channel: UnixStream::from_std(ours)?, life })
    }
}
