//! Work that may block: so much of it at the same time, and nobody waits for it for long.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

/// Places for work. One is taken until the work ends, also where nobody waits for it any more.
#[derive(Clone, Debug)]
pub(super) struct Bench(Arc<Semaphore>);

/// Why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// There was no place in time: it was not begun.
    Busy,
    /// It did not end in time, or broke off.
    Stuck,
}

impl Bench {
    pub(super) fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Does it where blocking is fine.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        time: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        let by = Instant::now() + time;
        let place = timeout_at(by, Arc::clone(&self.0).acquire_owned()).await;
        let Ok(Ok(place)) = place else { return Err(Unfinished::Busy) };
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        match timeout_at(by, done).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) | Err(_) => Err(Unfinished::Stuck),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn work_that_is_stuck_keeps_its_place_until_it_ends() {
        let bench = Bench::new(1);
        let (end, ended) = mpsc::channel::<()>();
        let stuck = bench.run(SHORT, move || ended.recv().is_ok()).await;
        assert_eq!(stuck, Err(Unfinished::Stuck));
        assert_eq!(bench.run(SHORT, || 1).await, Err(Unfinished::Busy));
        drop(end);
        assert_eq!(bench.run(Duration::from_secs(120), || 2).await, Ok(2));
    }

    #[tokio::test]
    async fn work_that_breaks_off_leaves_its_place() {
        let bench = Bench::new(1);
        let long = Duration::from_secs(120);
        assert_eq!(bench.run(long, || -> u8 { panic!("it breaks off") }).await, Err(Unfinished::Stuck));
        assert_eq!(bench.run(long, || 1).await, Ok(1));
    }
}
