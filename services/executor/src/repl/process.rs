//! The outer side's handle on one interpreter.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::timeout,
};
use tokio_util::{
    codec::{FramedRead, FramedWrite, LengthDelimitedCodec},
    task::AbortOnDropHandle,
};

use super::message::{self, FromEngine, LONGEST, Limits, ToEngine};
use crate::process::{Interpreter, Launcher, Life};

/// How long one may take to start and to take in its context.
const START_TIME: Duration = Duration::from_secs(20);
/// Messages that wait to be read by it.
const OUTBOX: usize = 64;

/// A running interpreter. Dropping it ends its process.
#[derive(Debug)]
pub(super) struct Process {
    said: FramedRead<OwnedReadHalf, LengthDelimitedCodec>,
    outbox: mpsc::Sender<Bytes>,
    /// Writes beside the reading, so that neither side waits for the other.
    _writer: AbortOnDropHandle<()>,
    pub(super) life: Life,
}

impl Process {
    /// Starts one whose variable `context` has this value.
    pub(super) async fn start(launcher: &Launcher, limits: Limits, context: &[u8]) -> io::Result<Self> {
        let Interpreter { channel, life } = launcher.interpreter().await?;
        let mut process = Self::over(channel, life);
        process.send(&ToEngine::Start(limits), context).await?;
        match timeout(START_TIME, process.next()).await?? {
            (FromEngine::Ready, _) => Ok(process),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn over(channel: UnixStream, life: Life) -> Self {
        let codec = LengthDelimitedCodec::builder().max_frame_length(LONGEST).new_codec();
        let (read, write) = channel.into_split();
        let (outbox, waiting) = mpsc::channel(OUTBOX);
        let writer = tokio::spawn(pass_on(waiting, FramedWrite::new(write, codec.clone())));
        let said = FramedRead::new(read, codec);
        Self { said, outbox, _writer: AbortOnDropHandle::new(writer), life }
    }

    /// Says something to it.
    pub(super) async fn send(&self, message: &ToEngine, attachment: &[u8]) -> io::Result<()> {
        let bytes = message::encode(message, attachment)?;
        self.outbox.send(bytes).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// What it says next. Loses nothing when it is dropped.
    pub(super) async fn next(&mut self) -> io::Result<(FromEngine, BytesMut)> {
        let bytes = self.said.next().await.ok_or(io::ErrorKind::UnexpectedEof)??;
        message::decode(bytes)
    }
}

async fn pass_on(
    mut waiting: mpsc::Receiver<Bytes>,
    mut to: FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>,
) {
    while let Some(bytes) = waiting.recv().await {
        // One that does not listen any more has ended, and its silence says so.
        if to.send(bytes).await.is_err() {
            return;
        }
    }
}
