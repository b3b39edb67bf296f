//! Logs that are given up before their end, so that whoever claims them next goes on.

use std::time::Duration;

use store::{Error, Lease, Store};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two tries while the store is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Gives a log up, as soon as its store can be told. A closing agent does not wait for that: what it owns is free once
/// it is known to be gone.
pub(crate) async fn give_up(store: &dyn Store, lease: Lease, closing: &CancellationToken) {
    while let Err(error) = store.release(lease.clone()).await {
        tracing::warn!(log = %lease.log(), %error, "a log cannot be given up");
        if closing.is_cancelled() || !matches!(error, Error::Unavailable(_)) {
            return;
        }
        sleep(PAUSE).await;
    }
}
