//! What tells one provider's API from another's.

use http::HeaderMap;
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::{Request, draft::Draft, failure::Failure};

/// The model that a request is for.
#[derive(Debug)]
pub(crate) struct Target {
    /// The provider's id of it.
    pub(crate) id: String,
    /// Tokens that one reply may have.
    pub(crate) max_output_tokens: u64,
    /// Further members of the body, from the model list.
    pub(crate) extra: Map<String, Value>,
}

/// An API of model providers.
pub(crate) trait Api: std::fmt::Debug + Send + Sync {
    /// The address of calls, below what an operator wrote as base address.
    fn address(&self, base: &str) -> String;

    /// Headers that each request has.
    fn headers(&self, key: Option<&SecretString>) -> Result<HeaderMap, http::header::InvalidHeaderValue>;

    /// The body of a request for a stream.
    fn body(&self, target: &Target, request: &Request) -> Map<String, Value>;

    /// Takes the data of one frame of a stream, or a whole reply that was not streamed.
    fn read(&self, data: &str, draft: &mut Draft) -> Result<(), Failure>;
}
