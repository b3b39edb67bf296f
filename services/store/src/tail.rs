//! A reader that follows a log.

use std::{collections::VecDeque, num::NonZeroUsize, sync::Arc};

use domain::{Event, LogId, RunId};
use futures_util::{Stream, stream};
use tokio::sync::watch;

use crate::{Error, EventLog, Head};

/// Events that a reader takes from the log at once: the bound of what a slow reader holds.
const PAGE: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Follows a log from after a position: first what is there, then what comes, for as long as it is polled. A slow
/// reader holds nothing up, since it reads from the log.
pub fn follow<L: EventLog + ?Sized>(
    log: Arc<L>,
    id: LogId,
    after: u64,
) -> impl Stream<Item = Result<Arc<Event>, Error>> + Send + 'static {
    let reader = Reader { log, id, position: after, page: VecDeque::new(), head: None };
    stream::try_unfold(reader, |mut reader| async move { Ok(Some((reader.next().await?, reader))) })
}

/// Follows the log of one run, until the event that ends it. Ends at once where that was read before.
pub fn tail<L: EventLog + ?Sized>(
    log: Arc<L>,
    run: &RunId,
    after: u64,
) -> impl Stream<Item = Result<Arc<Event>, Error>> + Send + 'static {
    let id = LogId::from(run);
    let reader = Reader { log, id, position: after, page: VecDeque::new(), head: None };
    stream::try_unfold((reader, None), |(mut reader, ended)| async move {
        let ended = match ended {
            Some(ended) => ended,
            None => reader.begins_after_the_end().await?,
        };
        if ended {
            return Ok(None);
        }
        let event = reader.next().await?;
        let ended = event.ends_run();
        Ok(Some((event, (reader, Some(ended)))))
    })
}

struct Reader<L: ?Sized> {
    log: Arc<L>,
    id: LogId,
    position: u64,
    page: VecDeque<Arc<Event>>,
    head: Option<watch::Receiver<Head>>,
}

impl<L: EventLog + ?Sized> Reader<L> {
    async fn next(&mut self) -> Result<Arc<Event>, Error> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.position = event.position;
                return Ok(event);
            }
            self.page = self.log.read(&self.id, self.position, PAGE).await?.into();
            if self.page.is_empty() {
                self.wait().await?;
            }
        }
    }

    /// Waits until there is more than has been read.
    async fn wait(&mut self) -> Result<(), Error> {
        let position = self.position;
        if self.head().await?.wait_for(|newest| newest.position > position).await.is_err() {
            // A log that has gone away says so at the next read.
            self.head = None;
        }
        Ok(())
    }

    async fn head(&mut self) -> Result<&mut watch::Receiver<Head>, Error> {
        match &mut self.head {
            Some(head) => Ok(head),
            none => Ok(none.insert(self.log.head(&self.id).await?)),
        }
    }

    async fn begins_after_the_end(&mut self) -> Result<bool, Error> {
        let Some(before) = self.position.checked_sub(1) else { return Ok(false) };
        let newest = self.head().await?.borrow().position;
        let last = self.log.read(&self.id, before.min(newest.saturating_sub(1)), NonZeroUsize::MIN).await?;
        Ok(last.iter().any(|event| event.ends_run()))
    }
}
