//! A connection inside the messages of a stream: bytes that others carry.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    time::timeout,
};
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::{CancellationToken, DropGuard, PollSender};
use tonic::transport::server::Connected;

/// The most that one message carries.
const PIECE: usize = 64 << 10;
/// How long the other side may take to read what was sent last.
const LINGER: Duration = Duration::from_secs(5);

/// One end of a connection. What comes is read from a stream; what goes is put into a channel.
#[derive(Debug)]
pub struct Tunnel<S: Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static> {
    /// `None` only while it is dropped.
    from: Option<S>,
    rest: Bytes,
    to: PollSender<Bytes>,
    ended: CancellationToken,
    _ends: DropGuard,
}

impl<S: Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static> Tunnel<S> {
    /// An end that reads from one and writes to the other.
    pub fn new(from: S, to: mpsc::Sender<Bytes>) -> Self {
        let ended = CancellationToken::new();
        Self {
            from: Some(from),
            rest: Bytes::new(),
            to: PollSender::new(to),
            _ends: ended.clone().drop_guard(),
            ended,
        }
    }

    /// Cancelled when this end is dropped: whoever had it is done with it.
    pub fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}

impl<S: Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static> AsyncRead for Tunnel<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            let Some(from) = &mut self.from else { return Poll::Ready(Ok(())) };
            match ready!(Pin::new(from).poll_next(context)) {
                Some(piece) => self.rest = piece?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let fits = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..fits]);
        self.rest.advance(fits);
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static> AsyncWrite for Tunnel<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    /// One message for as many pieces as fit.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let broken = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        ready!(self.to.poll_reserve(context)).map_err(broken)?;
        let mut message =
            Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum::<usize>().min(PIECE));
        for piece in pieces {
            message.extend_from_slice(&piece[..piece.len().min(PIECE - message.len())]);
        }
        let sent = message.len();
        self.to.send_item(message.into()).map_err(broken)?;
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.to.close();
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static> Connected for Tunnel<S> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl<S: Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static> Drop for Tunnel<S> {
    /// Dropping the stream that carries both directions would lose what was sent last: it is kept until the other side
    /// has ended too, or for a moment.
    fn drop(&mut self) {
        self.to.close();
        let Some(mut from) = self.from.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(timeout(LINGER, async move { while let Some(Ok(_)) = from.next().await {} }));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;

    type End = Tunnel<Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>>;

    fn pair() -> (End, End) {
        let ((one, from_other), (other, from_one)) = (mpsc::channel(2), mpsc::channel(2));
        let end = |from, to| {
            let from: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>> =
                Box::pin(ReceiverStream::new(from).map(Ok));
            Tunnel::new(from, to)
        };
        (end(from_other, other), end(from_one, one))
    }

    #[tokio::test]
    async fn what_one_end_writes_the_other_reads() {
        let (mut one, mut other) = pair();
        let sent: Vec<u8> = (0..300_000_u32).map(|byte| byte.to_le_bytes()[0]).collect();
        let mut read = Vec::new();
        let (written, _) = tokio::join!(
            async {
                one.write_all(&sent).await.unwrap();
                one.shutdown().await
            },
            async { other.read_to_end(&mut read).await.unwrap() }
        );
        written.unwrap();
        assert_eq!(read, sent);
    }

    #[tokio::test]
    async fn an_end_that_is_dropped_is_the_end_for_both() {
        let (one, mut other) = pair();
        let ended = one.ended();
        drop(one);
        assert!(ended.is_cancelled());
        assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
