//! The time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch; zero for a clock that is set before it.
pub fn unix_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
