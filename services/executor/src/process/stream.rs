//! One stream of output: read, kept in part, and handed on at the borders of characters.

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{Duration, Instant, timeout_at},
};

use super::{Capture, Source, Watch, capture::whole_characters};

/// How long a pipe is read after the launcher's report. Everything that could hold it open is dead by then.
pub(super) const DRAIN_TIME: Duration = Duration::from_secs(2);

/// One stream of the programs' output.
pub(super) struct Stream<R> {
    source: Source,
    pipe: Option<R>,
    deadline: Option<Instant>,
    /// Bytes that were read; between reads, at most the start of one character.
    buffer: Vec<u8>,
    offset: u64,
    pub(super) capture: Capture,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    pub(super) fn new(source: Source, pipe: Option<R>, keep: usize) -> Self {
        Self {
            source,
            pipe,
            deadline: None,
            buffer: Vec::with_capacity(16 << 10),
            offset: 0,
            capture: Capture::new(keep),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    pub(super) fn close_soon(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + DRAIN_TIME);
    }

    /// Reads once. Loses nothing when it is dropped.
    pub(super) async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let read = pipe.read_buf(&mut self.buffer);
        let read = match self.deadline {
            None => read.await,
            Some(deadline) => timeout_at(deadline, read).await.unwrap_or(Ok(0)),
        };
        if !matches!(read, Ok(1..)) {
            self.pipe = None;
        }
    }

    /// Hands on what was read, except the start of a character whose rest may follow.
    pub(super) fn deliver(&mut self, watch: &mut Watch, seen: &mut impl FnMut(Source, u64, &[u8])) {
        let ready = if self.is_open() { whole_characters(&self.buffer) } else { self.buffer.len() };
        let bytes: Vec<_> = self.buffer.drain(..ready).collect();
        if let Some(meter) = &watch.meter {
            meter.add(bytes.len());
        }
        match &mut watch.masker {
            Some(masker) => self.show(&masker.push(self.source, &bytes), seen),
            None => self.show(&bytes, seen),
        }
    }

    /// Keeps bytes and hands them on.
    pub(super) fn show(&mut self, bytes: &[u8], seen: &mut impl FnMut(Source, u64, &[u8])) {
        if !bytes.is_empty() {
            self.capture.push(bytes);
            seen(self.source, self.offset, bytes);
            self.offset += bytes.len() as u64;
        }
    }
}
