//! A reader that follows a run.

use std::{collections::VecDeque, num::NonZeroUsize, sync::Arc};

use domain::{Event, RunId};
use futures_util::{Stream, stream};
use tokio::sync::watch;

use crate::{Error, EventLog};

/// Events that a reader takes from the log at once: the bound of what a slow reader holds.
const PAGE: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Follows a run from after a position: first what is there, then what comes, until the terminal event. A slow
/// reader holds nothing up, since it reads from the log.
pub fn tail(
    log: Arc<dyn EventLog>,
    run: RunId,
    after: u64,
) -> impl Stream<Item = Result<Arc<Event>, Error>> + Send + 'static {
    let reader = Reader { log, run, position: after, page: VecDeque::new(), head: None, ended: false };
    stream::try_unfold(
        reader,
        |mut reader| async move { Ok(reader.next().await?.map(|event| (event, reader))) },
    )
}

struct Reader {
    log: Arc<dyn EventLog>,
    run: RunId,
    position: u64,
    page: VecDeque<Arc<Event>>,
    head: Option<watch::Receiver<u64>>,
    ended: bool,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Arc<Event>>, Error> {
        while !self.ended {
            if let Some(event) = self.page.pop_front() {
                self.position = event.position;
                self.ended = event.kind.is_terminal();
                return Ok(Some(event));
            }
            self.page = self.log.read(&self.run, self.position, PAGE).await?.into();
            if self.page.is_empty() {
                self.wait().await?;
            }
        }
        Ok(None)
    }

    /// Waits until there is more than has been read.
    async fn wait(&mut self) -> Result<(), Error> {
        let position = self.position;
        let head = match &mut self.head {
            Some(head) => head,
            none => none.insert(self.log.head(&self.run).await?),
        };
        // A log that has gone away says so at the next read.
        let _ = head.wait_for(|newest| *newest > position).await;
        Ok(())
    }
}
