//! How long the gateway looks for an agent that goes on with what a lost one did.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::Status;

/// Time between two looks for an agent.
const PAUSE: Duration = Duration::from_millis(250);
/// An agent that is lost again so soon was not there.
const BRIEF: Duration = Duration::from_secs(1);

/// The patience of one reader.
#[derive(Debug)]
pub(crate) struct Patience {
    most: Duration,
    /// When an agent was last there.
    there: Instant,
    /// When the newest one was found.
    found: Instant,
}

impl Patience {
    /// Looks for an agent for so long. One is there now.
    pub(crate) fn new(most: Duration) -> Self {
        let now = Instant::now();
        Self { most, there: now, found: now }
    }

    /// Something came.
    pub(crate) fn heard(&mut self) {
        (self.there, self.found) = (Instant::now(), Instant::now());
    }

    /// Looks for an agent that has what was lost just now; `None` once it is too late, or one says that there is nothing.
    pub(crate) async fn find<T, F: Future<Output = Result<T, Status>>>(
        &mut self,
        look: impl Fn() -> F,
        is_final: fn(&Status) -> bool,
    ) -> Option<T> {
        let now = Instant::now();
        if now.duration_since(self.found) >= BRIEF {
            self.there = now;
        }
        while self.there.elapsed() < self.most {
            sleep(PAUSE).await;
            match look().await {
                Ok(found) => {
                    self.found = Instant::now();
                    return Some(found);
                }
                Err(status) if is_final(&status) => break,
                Err(_) => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(20);

    fn never(_: &Status) -> bool {
        false
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_in_silence_outlives_many_agents() {
        let mut patience = Patience::new(MOST);
        for _ in 0..3 {
            sleep(3 * MOST).await;
            assert_eq!(patience.find(async || Ok(()), never).await, Some(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn agents_that_are_lost_at_once_are_none() {
        let (mut patience, began) = (Patience::new(MOST), Instant::now());
        while patience.find(async || Ok(()), never).await.is_some() {}
        assert!(began.elapsed() >= MOST);
        patience.heard();
        assert!(patience.find(async || Ok(()), never).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_is_not_looked_for() {
        let began = Instant::now();
        let gone = async || Err::<(), _>(Status::not_found("no such run"));
        assert_eq!(Patience::new(MOST).find(gone, |_| true).await, None);
        assert!(began.elapsed() < MOST);
    }
}
