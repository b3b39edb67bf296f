//! How much an evaluation may still do.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use super::message::Limits;

/// The interpreter asks once for so many of its steps.
const STEPS: u64 = 10;

/// Why an evaluation must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    Time(Duration),
    Steps(u64),
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(limit) => {
                write!(f, "the code worked for longer than {:.1} seconds", limit.as_secs_f64())
            }
            Self::Steps(limit) => write!(f, "the code took more than {limit} thousand steps"),
        }
    }
}

/// What an evaluation has used. The time for which it waits for its host is free.
#[derive(Debug, Default)]
pub(super) struct Budget {
    limit: Cell<(Duration, u64)>,
    used: Cell<Duration>,
    asked: Cell<u64>,
    since: Cell<Option<Instant>>,
    spent: Cell<Option<Spent>>,
}

impl Budget {
    /// A new evaluation.
    pub(super) fn begin(&self, limits: &Limits) {
        self.limit.set((Duration::from_millis(limits.work_ms), limits.kilosteps));
        self.used.set(Duration::ZERO);
        self.asked.set(0);
        self.spent.set(None);
        self.resume();
    }

    /// The interpreter works.
    pub(super) fn resume(&self) {
        self.since.set(Some(Instant::now()));
    }

    /// It waits.
    pub(super) fn pause(&self) {
        let worked = self.since.take().map(|since| since.elapsed()).unwrap_or_default();
        self.used.set(self.used.get() + worked);
    }

    /// Called by the interpreter every so many steps: whether it must stop.
    pub(super) fn tick(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.spent().is_some()
    }

    /// What is used up, if anything is. That stays so until the next evaluation.
    pub(super) fn spent(&self) -> Option<Spent> {
        let (time, kilosteps) = self.limit.get();
        let used = self.used.get() + self.since.get().map(|since| since.elapsed()).unwrap_or_default();
        let found = if used > time {
            Some(Spent::Time(time))
        } else {
            (self.asked.get() * STEPS > kilosteps).then_some(Spent::Steps(kilosteps))
        };
        self.spent.set(self.spent.get().or(found));
        self.spent.get()
    }
}
