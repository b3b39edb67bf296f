//! A request on its way out, and its answer.

use std::{error::Error, time::Duration};

use futures_util::StreamExt as _;
use reqwest::{
    Client, Method, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
};
use serde_json::{Value, json};

use crate::tools::Presentation;

/// Bytes that an answer may have.
const MOST_BYTES: usize = 4 << 20;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) url: Url,
    /// What the model says.
    pub(super) headers: HeaderMap,
    /// What the operator says. It counts before what the model says.
    pub(super) own: HeaderMap,
    pub(super) body: Option<String>,
}

pub(super) async fn ask(client: &Client, outgoing: Outgoing, timeout: Duration) -> Presentation {
    let Outgoing { method, url, headers, own, body } = outgoing;
    let mut all = HeaderMap::from_iter([(ACCEPT, JSON)]);
    if body.is_some() {
        all.insert(CONTENT_TYPE, JSON);
    }
    all.extend(headers);
    all.extend(own);
    let mut request = client.request(method, url).headers(all).timeout(timeout);
    if let Some(body) = body {
        request = request.body(body);
    }
    let answered = match request.send().await {
        Ok(response) => read(response).await,
        Err(error) => Err(unreachable(&error)),
    };
    answered
        .unwrap_or_else(|error| Presentation::Error { data: String::new(), error: format!("HTTP: {error}") })
}

async fn read(response: Response) -> Result<Presentation, String> {
    let (status, location) = (response.status(), response.headers().get(LOCATION).cloned());
    let kind = response.headers().get(CONTENT_TYPE).cloned();
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.map_err(|error| unreachable(&error))?);
        if body.len() > MOST_BYTES {
            return Err(format!("the answer is larger than {} MiB: ask for less", MOST_BYTES >> 20));
        }
    }
    let shown = |value: Option<HeaderValue>| {
        value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
    };
    let bytes = body.len();
    let body = match String::from_utf8(body) {
        Ok(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Err(_) => Value::String(format!("[{bytes} bytes of {} are left out]", shown(kind))),
    };
    let data = json!({"status_code": status.as_u16(), "body": body}).to_string();
    Ok(match status {
        status if status.is_success() => Presentation::Success(data),
        status if status.is_redirection() && location.is_some() => {
            let to = shown(location);
            Presentation::Error {
                data,
                error: format!("HTTP {status}: it is at {to}; redirects are not followed"),
            }
        }
        StatusCode::NOT_MODIFIED => Presentation::NoData(data),
        status => Presentation::Error { data, error: format!("HTTP {status}") },
    })
}

/// The innermost error says most. The outermost has the address in it.
fn unreachable(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match error.source() {
        Some(_) => cause.to_string(),
        None => "the request failed".to_owned(),
    }
}
