//! Where a model is asked, and how a request gets there.

use std::{error::Error as _, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, header};
use reqwest::{Client, Response, Url};
use tokio::time::{Instant, timeout_at};

use crate::{
    Error, Request, Settings,
    api::{Api, Target},
    failure::{Failure, Secrets},
    prices::Prices,
};

/// Bytes of an error's body that are read.
const ERROR_BODY_LIMIT: usize = 64 * 1024;

/// Where a model is asked.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    pub(crate) settings: Arc<Settings>,
    pub(crate) api: Box<dyn Api>,
    pub(crate) target: Target,
    pub(crate) url: Url,
    /// Host and port, for errors: the address may hold a password.
    pub(crate) host: String,
    pub(crate) headers: HeaderMap,
    pub(crate) secrets: Secrets,
    pub(crate) prices: Prices,
}

impl Endpoint {
    pub(crate) fn body(&self, request: &Request) -> Bytes {
        let body = self.api.body(&self.target, request);
        Bytes::from(serde_json::Value::Object(body).to_string())
    }

    /// Sends a request; the response has a good status.
    pub(crate) async fn send(&self, body: Bytes, deadline: Instant) -> Result<Response, Failure> {
        let mut headers = self.headers.clone();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        self.settings.outgoing.add(&mut headers);
        let sent = self.client.post(self.url.clone()).headers(headers).body(body).send();
        let Ok(sent) = timeout_at(self.wake(deadline), sent).await else {
            return Err(self.too_slow(deadline));
        };
        let response = sent.map_err(|error| self.unreached(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response, deadline).await)
    }

    async fn refused(&self, mut response: Response, deadline: Instant) -> Failure {
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_LIMIT {
            match timeout_at(self.wake(deadline), response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
        Failure::from_response(response.status(), response.headers(), &body, &self.secrets)
    }

    fn unreached(&self, error: &reqwest::Error) -> Failure {
        let what = if error.is_connect() { "cannot be reached" } else { "did not answer" };
        Failure::unavailable(format!("the model provider at {} {what}: {}", self.host, cause(error)))
    }

    /// When to stop waiting for the next bytes.
    pub(crate) fn wake(&self, deadline: Instant) -> Instant {
        deadline.min(Instant::now() + self.settings.idle_timeout)
    }

    /// What to say after [`Endpoint::wake`].
    pub(crate) fn too_slow(&self, deadline: Instant) -> Failure {
        let (host, settings) = (&self.host, &self.settings);
        Failure::lasting(Error::Unavailable(if Instant::now() < deadline {
            format!("the model provider at {host} sent nothing for {} s", settings.idle_timeout.as_secs_f64())
        } else {
            format!("the model call took longer than {} s", settings.request_timeout.as_secs_f64())
        }))
    }

    /// The error as it may be shown.
    pub(crate) fn shown(&self, failure: Failure) -> Error {
        failure.cleaned(&self.secrets).error
    }
}

/// The innermost cause: unlike the outer ones, it never shows the address.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the request failed".to_owned(), ToString::to_string)
}
