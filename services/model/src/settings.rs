//! How long calls may take, how often they are tried, how many may be in flight.

use std::{fmt, sync::Arc, time::Duration};

use http::HeaderMap;

use crate::ListError;

/// Seconds of the longest time that can be set.
const YEAR: u64 = 365 * 24 * 60 * 60;

/// Limits of all model calls, and what is added to each request.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest time of one call, waits and retries included.
    pub request_timeout: Duration,
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest silence of a provider. Models that think in silence need minutes.
    pub idle_timeout: Duration,
    /// Longest time that a call may wait for rate limits in total, the provider's or our own ceiling.
    pub rate_limit_wait: Duration,
    /// Tries of a call that fails for other reasons than a rate limit.
    pub tries: u32,
    /// Pause before the first retry; it doubles with each one.
    pub first_pause: Duration,
    /// Longest pause of our choice.
    pub longest_pause: Duration,
    /// Calls in flight per model; `None` means no ceiling.
    pub calls_per_model: Option<usize>,
    /// Context window of models whose entry in the list has none, in tokens.
    pub context_window: Option<u64>,
    /// Output limit of all models, in tokens.
    pub max_output_tokens: Option<u64>,
    /// Adds headers to each request.
    pub outgoing: Outgoing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            rate_limit_wait: Duration::from_secs(180),
            tries: 3,
            first_pause: Duration::from_secs(2),
            longest_pause: Duration::from_secs(60),
            calls_per_model: Some(64),
            context_window: None,
            max_output_tokens: None,
            outgoing: Outgoing::default(),
        }
    }
}

impl Settings {
    /// The defaults, changed by `LLM_REQUEST_TIMEOUT`, `LLM_CONNECT_TIMEOUT`, `LLM_IDLE_TIMEOUT`,
    /// `LLM_RATE_LIMIT_MAX_WAIT_SECONDS` (seconds), `LLM_MAX_CONCURRENT_CALLS_PER_MODEL` (0: no ceiling),
    /// `OVERRIDE_MAX_CONTENT_SIZE` and `OVERRIDE_MAX_OUTPUT_TOKEN`.
    ///
    /// # Errors
    /// If a value is not a number.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ListError> {
        let number = |name: &'static str| match env(name).as_deref().map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => match text.parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(ListError::Setting { name, value: text.to_owned() }),
            },
        };
        let seconds = |name, default: Duration| {
            number(name).map(|number| number.map_or(default, |number| Duration::from_secs(number.min(YEAR))))
        };
        let defaults = Self::default();
        Ok(Self {
            request_timeout: seconds("LLM_REQUEST_TIMEOUT", defaults.request_timeout)?,
            connect_timeout: seconds("LLM_CONNECT_TIMEOUT", defaults.connect_timeout)?,
            idle_timeout: seconds("LLM_IDLE_TIMEOUT", defaults.idle_timeout)?,
            rate_limit_wait: seconds("LLM_RATE_LIMIT_MAX_WAIT_SECONDS", defaults.rate_limit_wait)?,
            calls_per_model: match number("LLM_MAX_CONCURRENT_CALLS_PER_MODEL")? {
                None => defaults.calls_per_model,
                Some(0) => None,
                Some(calls) => usize::try_from(calls).ok(),
            },
            context_window: number("OVERRIDE_MAX_CONTENT_SIZE")?,
            max_output_tokens: number("OVERRIDE_MAX_OUTPUT_TOKEN")?,
            ..defaults
        })
    }
}

/// Adds headers, such as the trace context, to each request. It runs inside the span of the call.
#[derive(Clone)]
pub struct Outgoing(Arc<dyn Fn(&mut HeaderMap) + Send + Sync>);

impl Outgoing {
    /// Calls `add` for each request.
    pub fn new(add: impl Fn(&mut HeaderMap) + Send + Sync + 'static) -> Self {
        Self(Arc::new(add))
    }

    pub(crate) fn add(&self, headers: &mut HeaderMap) {
        (self.0)(headers);
    }
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outgoing")
    }
}
