//! An HTTP API that is asked for JSON.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{
    Client, Response, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
    redirect,
};
use serde::{Deserialize, de::DeserializeOwned};

/// Time to connect.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// Bytes that an answer may have.
const MOST_BYTES: usize = 8 << 20;

/// An HTTP API. What its address and headers say of credentials is in no error and no log.
#[derive(Clone)]
pub(crate) struct Source {
    base: Url,
    headers: HeaderMap,
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
        let client =
            Client::builder().connect_timeout(CONNECT_TIME).redirect(redirect::Policy::none()).build();
        Ok(Self {
            base: base.ok_or("an http(s) address")?,
            headers: authorization.map(|value| (AUTHORIZATION, value)).into_iter().collect(),
            client: client.map_err(|_| "usable: no HTTP client can be made")?,
        })
    }

    /// The same with these headers, which count before those that there are.
    pub(crate) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Asks for a path below the address. The answer must be there in this time.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        time: Duration,
    ) -> Result<T, String> {
        let mut url = self.base.join(path).map_err(|_| "its address is wrong".to_owned())?;
        url.query_pairs_mut().extend_pairs(query);
        let request = self.client.get(url).headers(self.headers.clone()).timeout(time);
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let body = read(response).await;
        if !status.is_success() {
            let said = body.ok().and_then(|body| serde_json::from_slice::<Refusal>(&body).ok());
            return Err(match said {
                Some(Refusal { error }) => format!("it answered {status}: {error}"),
                None => format!("it answered {status}"),
            });
        }
        serde_json::from_slice(&body?).map_err(|error| format!("its answer cannot be read: {error}"))
    }
}

/// What an API says of what it does not do.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

async fn read(response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.map_err(|error| unreachable(&error))?);
        if body.len() > MOST_BYTES {
            return Err(format!("its answer is larger than {} MiB", MOST_BYTES >> 20));
        }
    }
    Ok(body)
}

/// The text of an error could have the address in it, and that a password.
fn unreachable(error: &reqwest::Error) -> String {
    let why = if error.is_timeout() { "it did not answer in time" } else { "it cannot be reached" };
    why.to_owned()
}
