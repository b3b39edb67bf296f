//! Long texts on their way in.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{sync::mpsc, time::timeout};
use tonic::{Status, Streaming};
use wire::executor::PutBlobRequest;

use crate::workspace::{Digest, Rejected, Session, Workspaces};

/// How long the next piece may take to come.
const SILENCE: Duration = Duration::from_secs(30);
/// Pieces that wait for the disk.
const BACKLOG: usize = 8;

/// Takes a text in. Says its digest and its size.
pub(super) async fn put(
    workspaces: &Arc<Workspaces>,
    mut pieces: Streaming<PutBlobRequest>,
) -> Result<(Digest, u64), Status> {
    let first =
        next(&mut pieces).await?.ok_or_else(|| Status::invalid_argument("there is no first piece"))?;
    let account = first.caller.unwrap_or_default().account;
    let session = Session { account, id: first.session };
    let (to_disk, from_net) = mpsc::channel(BACKLOG);
    let workspaces = Arc::clone(workspaces);
    let keeping = tokio::task::spawn_blocking(move || keep(&workspaces, &session, from_net));
    let mut data = Some(first.data);
    while let Some(piece) = data {
        if !piece.is_empty() && to_disk.send(piece).await.is_err() {
            break;
        }
        data = next(&mut pieces).await?.map(|next| next.data);
    }
    // Nothing is kept of a text that does not come to its end: it ends here, and with an error above.
    let _ = to_disk.send(Bytes::new()).await;
    drop(to_disk);
    keeping.await.map_err(|error| Status::internal(error.to_string()))?
}

async fn next(pieces: &mut Streaming<PutBlobRequest>) -> Result<Option<PutBlobRequest>, Status> {
    let late = |_| Status::deadline_exceeded("the next piece did not come in time");
    timeout(SILENCE, pieces.message()).await.map_err(late)?
}

/// Writes pieces up to the empty one that says that they are all.
fn keep(
    workspaces: &Workspaces,
    session: &Session,
    mut pieces: mpsc::Receiver<Bytes>,
) -> Result<(Digest, u64), Status> {
    let workspace =
        workspaces.open(session).map_err(|error| Status::failed_precondition(error.to_string()))?;
    let mut draft = workspace.blobs.draft().map_err(|error| Status::internal(error.to_string()))?;
    while let Some(piece) = pieces.blocking_recv() {
        if piece.is_empty() {
            return Ok(draft.keep());
        }
        draft.push(&piece).map_err(|rejected| match rejected {
            Rejected::Full(_) => Status::resource_exhausted(rejected.to_string()),
            Rejected::Io(_) => Status::internal(rejected.to_string()),
        })?;
    }
    Err(Status::cancelled("the text did not come to its end"))
}
