//! How often keys may be used.

use std::{num::NonZeroU32, time::Duration};

use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    state::keyed::HashMapStateStore,
};

/// Requests a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// With one key.
    pub key: NonZeroU32,
    /// With all keys of an account together.
    pub account: NonZeroU32,
}

impl Default for Rates {
    fn default() -> Self {
        let times = |number: u32| NonZeroU32::MIN.saturating_add(number - 1);
        Self { key: times(600), account: times(3000) }
    }
}

/// What is left of the rates, by the ids of keys and accounts that exist.
#[derive(Debug)]
pub(crate) struct Limits {
    keys: Limiter,
    accounts: Limiter,
}

type Limiter = RateLimiter<String, HashMapStateStore<String>, DefaultClock>;

impl Limits {
    pub(crate) fn new(rates: Rates) -> Self {
        let limiter = |rate| RateLimiter::hashmap(Quota::per_minute(rate));
        Self { keys: limiter(rates.key), accounts: limiter(rates.account) }
    }

    /// Counts a request; the error is how long to wait before the next one.
    pub(crate) fn count(&self, key: &str, account: &str) -> Result<(), Duration> {
        for (limiter, id) in [(&self.keys, key), (&self.accounts, account)] {
            let counted = limiter.check_key(&id.to_owned());
            counted.map_err(|early| early.wait_time_from(DefaultClock::default().now()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_their_account_have_limits() {
        let two = NonZeroU32::MIN.saturating_add(1);
        let limits = Limits::new(Rates { key: two, account: two.saturating_add(1) });
        assert_eq!([limits.count("a", "acme"), limits.count("a", "acme")], [Ok(()); 2]);
        let wait = limits.count("a", "acme").unwrap_err();
        assert!(wait > Duration::from_secs(10) && wait <= Duration::from_secs(30), "{wait:?}");
        assert_eq!(limits.count("b", "acme"), Ok(()));
        assert!(limits.count("c", "acme").is_err(), "the account's own limit");
        assert_eq!(limits.count("d", "other"), Ok(()));
    }
}
