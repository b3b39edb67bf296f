//! How much programs have printed, and when last.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// Counts what programs print, all of them together.
#[derive(Debug)]
pub(crate) struct Meter(watch::Sender<Reading>);

#[derive(Clone, Copy, Debug)]
struct Reading {
    bytes: u64,
    last: Instant,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Reading { bytes: 0, last: Instant::now() }))
    }

    pub(super) fn add(&self, bytes: usize) {
        self.0.send_modify(|reading| {
            reading.bytes += bytes as u64;
            reading.last = Instant::now();
        });
    }

    /// Returns when more than `limit` bytes were printed.
    pub(crate) async fn exceeds(&self, limit: u64) {
        // The sender is here, so that the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|reading| reading.bytes > limit).await;
    }

    /// Returns when nothing was printed for a time.
    pub(crate) async fn is_silent_for(&self, time: Duration) {
        let mut readings = self.0.subscribe();
        loop {
            let last = readings.borrow_and_update().last;
            if timeout_at(last + time, readings.changed()).await.is_err() {
                return;
            }
        }
    }
}
