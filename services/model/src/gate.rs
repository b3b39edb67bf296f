//! The ceiling on calls in flight of one model.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::Error;

/// Calls that wait for a place, by `model`.
const WAITING: &str = "sleuth_model_calls_waiting";
/// Calls in flight, by `model`.
const IN_FLIGHT: &str = "sleuth_model_calls_in_flight";

/// Counts in a gauge for as long as it lives.
#[derive(Debug)]
struct Counted(metrics::Gauge);

impl Counted {
    fn new(gauge: &'static str, model: &str) -> Self {
        let gauge = metrics::gauge!(gauge, "model" => model.to_owned());
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// Lets so many calls through at a time.
#[derive(Debug)]
pub(crate) struct Gate {
    model: String,
    places: Option<Arc<Semaphore>>,
    ceiling: usize,
}

/// A place behind the gate, kept for as long as the call lives.
#[derive(Debug)]
pub(crate) struct Permit {
    _place: Option<OwnedSemaphorePermit>,
    _counted: Counted,
}

impl Gate {
    /// A gate for so many calls; `None` means any number.
    pub(crate) fn new(model: &str, ceiling: Option<usize>) -> Self {
        let ceiling = ceiling.map(|ceiling| ceiling.min(Semaphore::MAX_PERMITS));
        Self {
            model: model.to_owned(),
            places: ceiling.map(|ceiling| Arc::new(Semaphore::new(ceiling))),
            ceiling: ceiling.unwrap_or_default(),
        }
    }

    /// Waits for a place, at most for `limit`.
    pub(crate) async fn enter(&self, limit: Duration) -> Result<Permit, Error> {
        let permit = |place| Permit { _place: place, _counted: Counted::new(IN_FLIGHT, &self.model) };
        let Some(places) = &self.places else { return Ok(permit(None)) };
        let _waiting = Counted::new(WAITING, &self.model);
        match timeout(limit, places.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(permit(Some(place))),
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
        let gate = Gate::new("m", Some(1));
        let first = gate.enter(Duration::from_millis(1)).await.unwrap();
        let refused = gate.enter(Duration::from_millis(1)).await.unwrap_err();
        assert!(refused.to_string().contains("own ceiling of 1 calls"), "{refused}");
        drop(first);
        gate.enter(Duration::from_millis(1)).await.unwrap();
    }
}
