//! OpenAI's chat completions, and the many servers that speak them.

mod request;
mod stream;

use http::{HeaderMap, HeaderValue, header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::{
    Request,
    api::{Api, Target},
    draft::Draft,
    failure::Failure,
};

/// Chat completions.
#[derive(Debug)]
pub(crate) struct OpenAi {
    /// Name of the member that limits the reply: newer models of OpenAI refuse `max_tokens`, most other
    /// servers know nothing else.
    pub(crate) output_limit: &'static str,
}

impl Api for OpenAi {
    fn address(&self, base: &str) -> String {
        match base.ends_with("/chat/completions") {
            true => base.to_owned(),
            false => format!("{base}/chat/completions"),
        }
    }

    fn headers(&self, key: Option<&SecretString>) -> Result<HeaderMap, header::InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(headers)
    }

    fn body(&self, target: &Target, request: &Request) -> Map<String, Value> {
        request::body(target, request, self.output_limit)
    }

    fn read(&self, data: &str, draft: &mut Draft) -> Result<(), Failure> {
        stream::read(data, draft)
    }
}
