//! Headers of the request of whoever asks.

use std::{collections::HashMap, fmt, sync::Arc};

/// Headers that toolsets may send on. They are in no log, and no record of a run.
#[derive(Clone, Default)]
pub(crate) struct RequestHeaders(Arc<HashMap<String, String>>);

impl fmt::Debug for RequestHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl RequestHeaders {
    pub(crate) fn new(headers: HashMap<String, String>) -> Self {
        Self(Arc::new(headers))
    }

    pub(super) fn to_wire(&self) -> HashMap<String, String> {
        HashMap::clone(&self.0)
    }
}
