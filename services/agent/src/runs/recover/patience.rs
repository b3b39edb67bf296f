//! Logs that could not be worked on: each is left alone for a while, so that the others have their turn.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use domain::LogId;
use tokio::time::Instant;

/// How long one is left alone after its first failure, and at most.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);
/// How long one is remembered that nobody asks about: longer than a try takes.
const KEPT: Duration = Duration::from_secs(60);

/// What was tried of late.
#[derive(Debug, Default)]
pub(super) struct Patience(HashMap<LogId, Tried>);

#[derive(Debug)]
struct Tried {
    /// Not again before then.
    again: Instant,
    pause: Duration,
    times: u32,
}

impl Patience {
    /// Those that are to be tried now, those first that were tried least. What is not asked about for long is forgotten.
    pub(super) fn due(&mut self, mut logs: Vec<LogId>) -> Vec<LogId> {
        let asked: HashSet<_> = logs.iter().collect();
        let now = Instant::now();
        // While one is tried, nobody asks about it.
        self.0.retain(|log, tried| asked.contains(log) || now < tried.again + KEPT);
        logs.retain(|log| self.0.get(log).is_none_or(|tried| tried.again <= now));
        logs.sort_by_key(|log| self.0.get(log).map(|tried| tried.pause));
        logs
    }

    /// It is tried: as long as it is asked about, that was in vain. How often so far.
    pub(super) fn tried(&mut self, log: LogId) -> u32 {
        let now = Instant::now();
        let tried = self.0.entry(log).or_insert(Tried { again: now, pause: FIRST, times: 0 });
        tried.again = now + tried.pause;
        tried.pause = (tried.pause * 2).min(LONGEST);
        tried.times = tried.times.saturating_add(1);
        tried.times
    }
}
