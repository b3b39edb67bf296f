//! The ceiling on calls in flight of one model.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::Error;

/// Lets so many calls through at a time.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Option<Arc<Semaphore>>,
    ceiling: usize,
}

/// A place behind the gate, kept for as long as the call lives.
#[derive(Debug)]
pub(crate) struct Permit {
    _place: Option<OwnedSemaphorePermit>,
}

impl Gate {
    /// A gate for so many calls; `None` means any number.
    pub(crate) fn new(ceiling: Option<usize>) -> Self {
        let ceiling = ceiling.map(|ceiling| ceiling.min(Semaphore::MAX_PERMITS));
        Self {
            places: ceiling.map(|ceiling| Arc::new(Semaphore::new(ceiling))),
            ceiling: ceiling.unwrap_or_default(),
        }
    }

    /// Waits for a place, at most for `limit`.
    pub(crate) async fn enter(&self, limit: Duration) -> Result<Permit, Error> {
        let Some(places) = &self.places else { return Ok(Permit { _place: None }) };
        match timeout(limit, places.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(Permit { _place: Some(place) }),
            Ok(Err(_)) | Err(_) => Err(Error::RateLimited {
                message: format!(
                    "Sleuth's own ceiling of {} calls in flight for this model was met for {} s",
                    self.ceiling,
                    limit.as_secs_f64()
                ),
                retry_after: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_is_freed_by_its_drop() {
        let gate = Gate::new(Some(1));
        let first = gate.enter(Duration::from_millis(1)).await.unwrap();
        let refused = gate.enter(Duration::from_millis(1)).await.unwrap_err();
        assert!(refused.to_string().contains("own ceiling of 1 calls"), "{refused}");
        drop(first);
        gate.enter(Duration::from_millis(1)).await.unwrap();
    }
}
