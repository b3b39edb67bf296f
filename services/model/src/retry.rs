//! When to ask again: before the first delta only, within the limits of the settings.

use std::time::Duration;

use crate::{
    Error, Settings,
    failure::{Again, Failure},
};

/// The pauses of one call.
#[derive(Debug)]
pub(crate) struct Backoff<'a> {
    settings: &'a Settings,
    vain: Vain,
}

/// What was asked in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vain {
    /// How often.
    pub(crate) failures: u32,
    /// The pauses after that.
    pub(crate) waited: Duration,
}

impl<'a> Backoff<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Self { settings, vain: Vain::default() }
    }

    /// What was asked in vain so far.
    pub(crate) fn vain(&self) -> Vain {
        self.vain
    }

    /// How long to wait after this failure; `None` means to give up.
    pub(crate) fn pause(&mut self, failure: &Failure) -> Option<Duration> {
        self.vain.failures += 1;
        let pause = match failure.again {
            Again::Never => return None,
            Again::After(wait) => wait,
            Again::Soon => jittered(self.exponential()),
        };
        let rate_limited = matches!(failure.error, Error::RateLimited { .. });
        let waited = self.vain.waited.checked_add(pause)?;
        if (!rate_limited && self.vain.failures >= self.settings.tries)
            || waited > self.settings.rate_limit_wait
        {
            return None;
        }
        self.vain.waited = waited;
        Some(pause)
    }

    fn exponential(&self) -> Duration {
        let doublings = (self.vain.failures - 1).min(16);
        self.settings.first_pause.saturating_mul(1 << doublings).min(self.settings.longest_pause)
    }
}

/// Between half of the pause and all of it, so that callers that failed together do not return together.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(again: Again) -> Failure {
        Failure { error: Error::RateLimited { message: String::new(), retry_after: None }, again }
    }

    #[test]
    fn rate_limits_are_waited_for_up_to_a_total() {
        let settings = Settings::default();
        let mut backoff = Backoff::new(&settings);
        let pauses: Vec<_> = std::iter::from_fn(|| backoff.pause(&limited(Again::Soon))).collect();
        assert!(pauses[0] >= Duration::from_secs(1) && pauses[0] <= Duration::from_secs(2), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(60)), "{pauses:?}");
        assert!(pauses.iter().sum::<Duration>() <= Duration::from_secs(180), "{pauses:?}");
        assert!(pauses.len() >= 5, "{pauses:?}");
    }

    #[test]
    fn the_providers_wait_is_taken_as_it_is_or_not_at_all() {
        let settings = Settings::default();
        let mut backoff = Backoff::new(&settings);
        let wait = |seconds| limited(Again::After(Duration::from_secs(seconds)));
        assert_eq!(backoff.pause(&wait(100)), Some(Duration::from_secs(100)));
        assert_eq!(backoff.pause(&wait(100)), None);
    }

    #[test]
    fn other_failures_are_tried_a_few_times() {
        let settings = Settings::default();
        let mut backoff = Backoff::new(&settings);
        let failure = Failure::unavailable("busy");
        assert!(backoff.pause(&failure).is_some());
        assert!(backoff.pause(&failure).is_some());
        assert_eq!(backoff.pause(&failure), None);
        assert_eq!(Backoff::new(&settings).pause(&Failure::malformed("")), None);
    }
}
