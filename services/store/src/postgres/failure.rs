//! What goes wrong between this process and the database, and what passes by itself.

use std::time::Duration;

use deadpool_postgres::PoolError;
use tokio::time::{Instant, error::Elapsed, sleep};
use tokio_postgres::error::SqlState;

use crate::Error;

/// How long a request is tried: long enough for a database to start again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause before another try: doubled each time, up to the longest.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Why a try did not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It did: the answer is no.
    #[error(transparent)]
    Answer(#[from] Error),
    #[error("{}", told(.0))]
    Database(#[from] tokio_postgres::Error),
    #[error("{}", match .0 { PoolError::Backend(error) => told(error), other => other.to_string() })]
    Pool(#[from] PoolError),
    #[error("the database does not answer")]
    Late(#[from] Elapsed),
}

/// The database's own words, if there are any.
fn told(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), source(error)) {
        (Some(error), _) => error.message().to_owned(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

fn source(error: &tokio_postgres::Error) -> Option<&(dyn std::error::Error + 'static)> {
    std::error::Error::source(error)
}

impl Failure {
    /// Whether the same request may work a little later.
    fn passes(&self) -> bool {
        let error = match self {
            Self::Answer(_) => return false,
            Self::Pool(PoolError::Backend(error)) | Self::Database(error) => error,
            Self::Pool(_) | Self::Late(_) => return true,
        };
        match error.code() {
            // The connection is gone, or could not be made; otherwise it is the request that is wrong.
            None => {
                error.is_closed() || source(error).is_none_or(<dyn std::error::Error>::is::<std::io::Error>)
            }
            Some(code) => {
                *code == SqlState::T_R_SERIALIZATION_FAILURE
                    || *code == SqlState::T_R_DEADLOCK_DETECTED
                    || *code == SqlState::ADMIN_SHUTDOWN
                    || *code == SqlState::CRASH_SHUTDOWN
                    || *code == SqlState::CANNOT_CONNECT_NOW
                    || *code == SqlState::TOO_MANY_CONNECTIONS
                    // A standby that is not promoted yet.
                    || *code == SqlState::READ_ONLY_SQL_TRANSACTION
            }
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Answer(error) => error,
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// The tries of one request.
pub(super) struct Tries {
    until: Instant,
    pause: Duration,
}

impl Tries {
    pub(super) fn new() -> Self {
        Self { until: Instant::now() + PATIENCE, pause: PAUSE }
    }

    /// Waits before another try; says no if there should be none.
    pub(super) async fn again(&mut self, failure: &Failure) -> bool {
        if !failure.passes() || Instant::now() + self.pause > self.until {
            return false;
        }
        // Clients that lost the same database do not all come back at once.
        sleep(self.pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}
