//! Headers of whoever asks.

use std::{collections::BTreeMap, sync::Arc};

use secrecy::SecretString;

use crate::redact::carries_secret;

/// Headers of the request of whoever asks, as far as they are passed on. No log shows their values.
#[derive(Clone, Default)]
pub(crate) struct RequestHeaders(Arc<BTreeMap<String, String>>);

impl std::fmt::Debug for RequestHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl RequestHeaders {
    pub(crate) fn new(headers: impl IntoIterator<Item = (String, String)>) -> Self {
        let named = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
        Self(Arc::new(named.collect()))
    }

    /// The value of a header, however its name is written.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// Values whose names say that they are secret.
    pub(crate) fn secrets(&self) -> Vec<SecretString> {
        let secret = self.0.iter().filter(|(name, _)| carries_secret(name));
        secret.filter_map(|(_, value)| credential(value)).collect()
    }

    /// What the model is told of one that is not there.
    pub(crate) fn absent(name: &str) -> String {
        format!("the request that asks has no header `{name}`, or it is not passed on")
    }
}

/// What is secret of a header's value: the scheme before it is not.
pub(crate) fn credential(value: &str) -> Option<SecretString> {
    value.split_whitespace().last().map(SecretString::from)
}
