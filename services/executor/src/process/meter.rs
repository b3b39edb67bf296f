//! How much programs have printed, and when they last gave a sign.

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
    /// `None` until the first of them begins.
    last: Option<Instant>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Reading { bytes: 0, last: None }))
    }

    /// Programs begin.
    pub(super) fn begin(&self) {
        self.add(0);
    }

    pub(super) fn add(&self, bytes: usize) {
        self.0.send_modify(|reading| {
            reading.bytes += bytes as u64;
            reading.last = Some(Instant::now());
        });
    }

    /// Returns when more than `limit` bytes were printed.
    pub(crate) async fn exceeds(&self, limit: u64) {
        // The sender is here, so that the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|reading| reading.bytes > limit).await;
    }

    /// Returns when programs that have begun printed nothing for a time.
    pub(crate) async fn is_silent_for(&self, time: Duration) {
        let mut readings = self.0.subscribe();
        loop {
            let last = readings.borrow_and_update().last;
            match last {
                // The sender is here, so that the wait cannot fail.
                None => drop(readings.changed().await),
                Some(last) if timeout_at(last + time, readings.changed()).await.is_err() => return,
                Some(_) => {}
            }
        }
    }
}
