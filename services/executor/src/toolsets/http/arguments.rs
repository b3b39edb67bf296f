//! What a model may say of a request.

use reqwest::{
    Method, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Headers that choose a form, and change nothing: others, such as those that override the method, could.
const HEADERS: [&str; 7] =
    ["accept", "accept-language", "content-type", "if-modified-since", "if-none-match", "prefer", "range"];
/// The most bytes that the arguments of a call may have.
const BYTES: usize = 256 << 10;

#[derive(Deserialize)]
struct Given {
    url: String,
    method: Option<String>,
    body: Option<Value>,
    headers: Option<Value>,
}

/// A request, as far as the model has a say.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) body: Option<String>,
    pub(super) headers: HeaderMap,
}

impl Arguments {
    pub(super) fn read(json: &str) -> Result<Self, String> {
        if json.len() > BYTES {
            return Err(format!("the arguments are longer than {BYTES} bytes"));
        }
        let given: Given =
            serde_json::from_str(json).map_err(|error| format!("the arguments cannot be read: {error}"))?;
        let method = given.method.unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase();
        let method = method.parse().map_err(|_| "`method` must be an HTTP method".to_owned())?;
        let body = given.body.filter(|body| !body.is_null()).map(|body| match body {
            Value::String(text) => text,
            json => json.to_string(),
        });
        if body.is_some() && matches!(method, Method::GET | Method::HEAD) {
            return Err(format!("a {method} has no `body`"));
        }
        Ok(Self { url: address(&given.url)?, method, body, headers: headers(given.headers)? })
    }
}

fn address(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text.trim()).map_err(|error| format!("`url` must be an address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("`url` must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`url` must not have a user name or a password".to_owned());
    }
    // A server may decode a path once more than its rules are read.
    let path = percent_encoding::percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err("the path of `url` must not go up".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

/// An object, or the text of one.
fn headers(given: Option<Value>) -> Result<HeaderMap, String> {
    let wrong = || "`headers` must be a JSON object of texts".to_owned();
    let given: Map<String, Value> = match given {
        None | Some(Value::Null) => return Ok(HeaderMap::new()),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(HeaderMap::new()),
        Some(Value::String(text)) => serde_json::from_str(&text).map_err(|_| wrong())?,
        Some(Value::Object(map)) => map,
        Some(_) => return Err(wrong()),
    };
    let read = given.into_iter().map(|(name, value)| {
        if !HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(format!("the header `{name}` cannot be chosen, only {}", HEADERS.join(", ")));
        }
        let value = value.as_str().and_then(|text| HeaderValue::from_str(text).ok()).ok_or_else(wrong)?;
        Ok((HeaderName::try_from(name).map_err(|_| wrong())?, value))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        for (arguments, why) in [
            (json!({}), "missing field `url`"),
            (json!({"url": "x"}), "must be an address"),
            (json!({"url": "file:///etc/passwd"}), "must begin with http"),
            (json!({"url": "http://me:pass@a/"}), "a user name or a password"),
            (json!({"url": "http://a/b/..%2fc"}), "must not go up"),
            (json!({"url": "http://a/b/%2e%2e%5cc"}), "must not go up"),
            (json!({"url": "http://a/", "method": "GET X"}), "an HTTP method"),
            (json!({"url": "http://a/", "body": "{}"}), "a GET has no `body`"),
            (json!({"url": "http://a/", "headers": [1]}), "a JSON object of texts"),
            (json!({"url": "http://a/", "headers": {"Accept": "a\nb"}}), "a JSON object of texts"),
            (
                json!({"url": "http://a/", "headers": {"X-HTTP-Method-Override": "DELETE"}}),
                "cannot be chosen",
            ),
            (json!({"url": "http://a/", "headers": "{\"Authorization\": \"x\"}"}), "cannot be chosen"),
        ] {
            let found = Arguments::read(&arguments.to_string()).unwrap_err();
            assert!(found.contains(why), "{arguments}: {found}");
        }
    }

    #[test]
    fn bodies_and_headers_come_as_text_or_as_json() {
        for arguments in [
            json!({"url": "http://a/#part", "method": "post", "body": {"a": 1}, "headers": {"Accept": "text/csv"}}),
            json!({"url": "http://a/", "method": "POST", "body": "{\"a\":1}", "headers": "{\"accept\": \"text/csv\"}"}),
        ] {
            let read = Arguments::read(&arguments.to_string()).unwrap();
            assert_eq!((read.url.as_str(), read.method), ("http://a/", Method::POST));
            assert_eq!(read.body.as_deref(), Some("{\"a\":1}"));
            assert_eq!(read.headers["accept"], "text/csv");
        }
    }
}
