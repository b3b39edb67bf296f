//! Long texts on their way in.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};
use tonic::Status;
use wire::executor::PutBlobRequest;

use super::busy;
use crate::workspace::{Digest, Rejected, Session, Workspaces};

/// Texts that come in at the same time. Each holds a thread.
const PLACES: usize = 16;
/// Pieces that wait for the disk.
const BACKLOG: usize = 8;

/// Takes texts in.
#[derive(Debug)]
pub(super) struct Intake {
    workspaces: Arc<Workspaces>,
    places: Arc<Semaphore>,
    times: Times,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    /// Until there is a place.
    queue: Duration,
    /// Until the next piece comes.
    silence: Duration,
    /// For the whole text.
    whole: Duration,
}

const TIMES: Times = Times {
    queue: Duration::from_secs(10),
    silence: Duration::from_secs(30),
    whole: Duration::from_secs(300),
};

impl Intake {
    pub(super) fn new(workspaces: Arc<Workspaces>) -> Self {
        Self { workspaces, places: Arc::new(Semaphore::new(PLACES)), times: TIMES }
    }

    /// Takes a text in. Says its digest and its size.
    pub(super) async fn put(
        &self,
        pieces: impl Stream<Item = Result<PutBlobRequest, Status>>,
    ) -> Result<(Digest, u64), Status> {
        let place = timeout(self.times.queue, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else { return Err(busy("too many texts are on their way in")) };
        let late = |_| Status::deadline_exceeded("the text did not come in time");
        timeout(self.times.whole, self.take(place, pieces)).await.map_err(late)?
    }

    async fn take(
        &self,
        place: OwnedSemaphorePermit,
        pieces: impl Stream<Item = Result<PutBlobRequest, Status>>,
    ) -> Result<(Digest, u64), Status> {
        let mut pieces = pin!(pieces);
        let mut next = async || {
            let late = |_| Status::deadline_exceeded("the next piece did not come in time");
            timeout(self.times.silence, pieces.next()).await.map_err(late)?.transpose()
        };
        let first = next().await?.ok_or_else(|| Status::invalid_argument("there is no first piece"))?;
        let account = first.caller.unwrap_or_default().account;
        let session = Session { account, id: first.session };
        let (to_disk, from_net) = mpsc::channel(BACKLOG);
        let workspaces = Arc::clone(&self.workspaces);
        let keeping = tokio::task::spawn_blocking(move || {
            let _place = place;
            keep(&workspaces, &session, from_net)
        });
        let mut data = Some(first.data);
        while let Some(piece) = data {
            if !piece.is_empty() && to_disk.send(piece).await.is_err() {
                break;
            }
            data = next().await?.map(|next| next.data);
        }
        // Nothing is kept of a text that does not come to its end: it ends here, and with an error above.
        let _ = to_disk.send(Bytes::new()).await;
        drop(to_disk);
        keeping.await.map_err(|error| Status::internal(error.to_string()))?
    }
}

/// Writes pieces up to the empty one that says that they are all.
fn keep(
    workspaces: &Workspaces,
    session: &Session,
    mut pieces: mpsc::Receiver<Bytes>,
) -> Result<(Digest, u64), Status> {
    let workspace =
        workspaces.open(session).map_err(|error| Status::failed_precondition(error.to_string()))?;
    let mut draft = workspace.blobs.draft()?;
    while let Some(piece) = pieces.blocking_recv() {
        if piece.is_empty() {
            return Ok(draft.keep());
        }
        draft.push(&piece)?;
    }
    Err(Status::cancelled("the text did not come to its end"))
}

impl From<Rejected> for Status {
    fn from(rejected: Rejected) -> Self {
        let why = rejected.to_string();
        match rejected {
            Rejected::Full(_) | Rejected::TooMany(_) => Self::resource_exhausted(why),
            Rejected::Io(_) => Self::internal(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio_stream::wrappers::ReceiverStream;
    use tonic::Code;

    use super::*;
    use crate::workspace::Limits;

    const LONG: Duration = Duration::from_secs(120);

    fn piece(data: &'static [u8]) -> Result<PutBlobRequest, Status> {
        Ok(PutBlobRequest {
            session: "s".to_owned(),
            data: Bytes::from_static(data),
            ..PutBlobRequest::default()
        })
    }

    fn intake(state: &tempfile::TempDir, times: Times) -> Arc<Intake> {
        let limits = Limits { bytes: 1 << 20, most: 1, idle: LONG };
        let workspaces = Arc::new(Workspaces::new(state.path().to_owned(), limits));
        Arc::new(Intake { workspaces, places: Arc::new(Semaphore::new(1)), times })
    }

    #[tokio::test]
    async fn a_text_has_a_place_of_which_there_are_few() {
        let state = tempfile::tempdir().unwrap();
        let times = Times { queue: Duration::from_millis(50), silence: LONG, whole: LONG };
        let intake = intake(&state, times);
        let (to, from) = mpsc::channel(1);
        let first = tokio::spawn({
            let intake = Arc::clone(&intake);
            async move { intake.put(ReceiverStream::new(from)).await }
        });
        to.send(piece(b"a")).await.unwrap();
        // There is room for this one when the one before was taken.
        to.send(piece(b"b")).await.unwrap();
        let refused = intake.put(stream::iter([piece(b"c")])).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        drop(to);
        assert_eq!(first.await.unwrap().unwrap().1, 2);
        assert_eq!(intake.put(stream::iter([piece(b"c")])).await.unwrap().1, 1);
    }

    #[tokio::test]
    async fn pieces_without_end_end() {
        let state = tempfile::tempdir().unwrap();
        let times = Times { queue: LONG, silence: LONG, whole: Duration::from_millis(200) };
        let intake = intake(&state, times);
        let endless = stream::unfold((), async |()| {
            tokio::task::yield_now().await;
            Some((piece(b""), ()))
        });
        let late = intake.put(endless).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        let broken = intake.put(stream::iter([piece(b"c"), Err(Status::aborted("gone"))])).await.unwrap_err();
        assert_eq!(broken.code(), Code::Aborted, "its place was free: {broken}");
    }
}
