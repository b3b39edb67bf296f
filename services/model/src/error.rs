//! Why a model did not answer.

use std::time::Duration;

/// Why a model did not answer. The texts never hold a key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The provider refused for its rate limit, also after retries.
    #[error("{message}")]
    RateLimited {
        /// What the provider wrote.
        message: String,
        /// When to try again, if it said so.
        retry_after: Option<Duration>,
    },
    /// The provider has nothing more to give for these credentials, until somebody pays for it.
    #[error("{0}")]
    QuotaExhausted(String),
    /// The provider refused the credentials (401, 403).
    #[error("{0}")]
    Unauthenticated(String),
    /// The provider refused the request (other 4xx).
    #[error("{0}")]
    Rejected(String),
    /// The provider failed, could not be reached, hung or broke off.
    #[error("{0}")]
    Unavailable(String),
    /// The provider sent what cannot be read.
    #[error("{0}")]
    Malformed(String),
}

impl Error {
    /// A stable name of the kind, for traces and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::QuotaExhausted(_) => "quota_exhausted",
            Self::Unauthenticated(_) => "unauthenticated",
            Self::Rejected(_) => "rejected",
            Self::Unavailable(_) => "unavailable",
            Self::Malformed(_) => "malformed",
        }
    }
}
