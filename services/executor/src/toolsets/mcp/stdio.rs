//! An MCP server as a process of ours: under a launcher like every other, so that it ends when the executor does.

use std::{ffi::OsString, io, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, stream};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::{
    io::AsyncRead,
    net::unix::pipe,
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::{io::StreamReader, sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    process::{Exit, Launcher, Outcome, Source, Spec},
    scratch::Scratch,
};

/// Pieces of its output that may wait to be read. A server that writes faster than that is ended.
const PIECES: usize = 4096;
/// What is kept of its messages.
const MESSAGE_BYTES: usize = 4096;
/// How long a server that closed its output may take to end.
const END_TIME: Duration = Duration::from_secs(1);
/// A launcher's programs have no input of their own: this one reads a named pipe.
const START: &str = r#"exec "$@" <"$0""#;

/// A running server. Dropping it ends the process and all that it started.
#[derive(Debug)]
pub(super) struct Process {
    _running: AbortOnDropHandle<()>,
    last_words: oneshot::Receiver<String>,
    /// Holds the pipe.
    _directory: Scratch,
}

impl Process {
    /// Starts a server; its output and its input come beside it.
    pub(super) fn start(
        bash: &str,
        launcher: &Launcher,
        command: &[String],
        environment: &[(OsString, OsString)],
    ) -> Result<(Self, impl AsyncRead + Send + Unpin + 'static, pipe::Sender), String> {
        let (directory, pipe, input) = named_pipe().map_err(|error| format!("no pipe for it: {error}"))?;
        let program =
            [bash, "-c", START, &pipe].into_iter().map(str::to_owned).chain(command.iter().cloned());
        let spec = Spec::program(program.collect());
        let mut launcher = launcher.clone();
        launcher.environment.extend_from_slice(environment);

        let (pieces, output) = mpsc::channel(PIECES);
        let (say, last_words) = oneshot::channel();
        let running = async move {
            let stop = CancellationToken::new();
            let seen = |source, _, bytes: &[u8]| match source {
                Source::Stdout if pieces.try_send(Ok(Bytes::copy_from_slice(bytes))).is_err() => {
                    stop.cancel();
                }
                Source::Stdout | Source::Stderr => {}
            };
            let outcome = launcher.run(&spec, MESSAGE_BYTES, &stop, seen).await;
            // Nobody may be there to hear them.
            let _ = say.send(words(&outcome));
            drop(pieces);
        };
        let running = AbortOnDropHandle::new(tokio::spawn(running));
        let process = Self { _running: running, last_words, _directory: directory };
        Ok((process, StreamReader::new(pieces_of(output)), input))
    }

    /// Why it ended, if it did.
    pub(super) async fn last_words(self) -> Option<String> {
        timeout(END_TIME, self.last_words).await.ok()?.ok()
    }
}

fn named_pipe() -> io::Result<(Scratch, String, pipe::Sender)> {
    let directory = Scratch::new()?;
    let path = directory.path().join("input");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    // Opened for both, so that it opens before the server does.
    let sender = pipe::OpenOptions::new().read_write(true).open_sender(&path)?;
    let path = path.into_os_string().into_string().map_err(|_| io::ErrorKind::InvalidFilename)?;
    Ok((directory, path, sender))
}

fn pieces_of(
    output: mpsc::Receiver<io::Result<Bytes>>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    Box::pin(stream::unfold(output, async |mut output| Some((output.recv().await?, output))))
}

fn words(outcome: &Outcome) -> String {
    let messages = outcome.stderr.text();
    let last = messages.trim_end().lines().last().unwrap_or_default();
    match outcome.exits.first() {
        Some(Exit::Exited(code)) => format!("its process exited with {code}: {last}"),
        Some(Exit::Signalled(signal)) => format!("its process was ended by signal {signal}: {last}"),
        Some(Exit::NotStarted(why)) => format!("its process did not start: {why}"),
        None => "its process did not start".to_owned(),
    }
}
