//! An HTTP API that is asked for JSON.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, HeaderValue},
    redirect,
};
use serde::de::DeserializeOwned;

/// Time to connect, and to answer in full.
const CONNECT_TIME: Duration = Duration::from_secs(3);
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Bytes that an answer may have.
const MOST_BYTES: usize = 8 << 20;

/// An HTTP API. What its address and header say of credentials is in no error and no log.
#[derive(Clone)]
pub(crate) struct Source {
    base: Url,
    authorization: Option<HeaderValue>,
    client: Client,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("host", &self.base.host_str()).finish_non_exhaustive()
    }
}

impl Source {
    /// The API at an address. The error says what is wrong with the settings, without their values.
    pub(crate) fn new(address: &str, authorization: Option<&str>) -> Result<Self, &'static str> {
        let base = Url::parse(&format!("{}/", address.trim_end_matches('/')));
        let base = base.ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let authorization = authorization.map(HeaderValue::from_str).transpose();
        let mut authorization = authorization.map_err(|_| "sent with an authorization header of one line")?;
        authorization.iter_mut().for_each(|value| value.set_sensitive(true));
        let client = Client::builder()
            .connect_timeout(CONNECT_TIME)
            .timeout(ANSWER_TIME)
            .redirect(redirect::Policy::none())
            .build();
        Ok(Self {
            base: base.ok_or("an http(s) address")?,
            authorization,
            client: client.map_err(|_| "usable: no HTTP client can be made")?,
        })
    }

    /// Asks for a path below the address.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, String> {
        let mut url = self.base.join(path).map_err(|_| "its address is wrong".to_owned())?;
        url.query_pairs_mut().extend_pairs(query);
        let mut request = self.client.get(url);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("it answered {status}"));
        }
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| unreachable(&error))?);
            if body.len() > MOST_BYTES {
                return Err(format!("its answer is larger than {} MiB", MOST_BYTES >> 20));
            }
        }
        serde_json::from_slice(&body).map_err(|error| format!("its answer cannot be read: {error}"))
    }
}

/// The text of an error could have the address in it, and that a password.
fn unreachable(error: &reqwest::Error) -> String {
    let why = if error.is_timeout() { "it did not answer in time" } else { "it cannot be reached" };
    why.to_owned()
}
