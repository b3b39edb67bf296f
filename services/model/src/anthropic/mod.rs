//! Anthropic's messages.

mod request;
mod stream;
mod thinking;

use http::{HeaderMap, HeaderValue, header::InvalidHeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::{
    Request,
    api::{Api, Target},
    draft::Draft,
    failure::Failure,
};

const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Messages.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Api for Anthropic {
    fn address(&self, base: &str) -> String {
        match base {
            base if base.ends_with("/v1/messages") => base.to_owned(),
            base if base.ends_with("/v1") => format!("{base}/messages"),
            base => format!("{base}/v1/messages"),
        }
    }

    fn headers(&self, key: Option<&SecretString>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", VERSION);
        if let Some(key) = key {
            let mut value = HeaderValue::try_from(key.expose_secret())?;
            value.set_sensitive(true);
            headers.insert("x-api-key", value);
        }
        Ok(headers)
    }

    fn body(&self, target: &Target, request: &Request) -> Map<String, Value> {
        request::body(target, request)
    }

    fn read(&self, data: &str, draft: &mut Draft) -> Result<(), Failure> {
        stream::read(data, draft)
    }
}
