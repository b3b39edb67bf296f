//! What went wrong with a call, and whether asking again may help.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::Error;

/// Characters of a provider's body that an error shows where the body has no message.
const BODY_SHOWN: usize = 500;
/// Characters of a provider's message that an error shows.
const MESSAGE_SHOWN: usize = 2000;

/// What providers call it that somebody has to pay first.
const UNPAID: [&str; 3] = ["insufficient_quota", "billing_error", "billing_hard_limit_reached"];

/// A failed try.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) again: Again,
}

/// Whether another try may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It would fail the same way, or was long enough already.
    Never,
    /// After a pause of our choice.
    Soon,
    /// After the pause that the provider asked for.
    After(Duration),
}

impl Failure {
    pub(crate) fn lasting(error: Error) -> Self {
        Self { error, again: Again::Never }
    }

    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self { error: Error::Unavailable(text.into()), again: Again::Soon }
    }

    pub(crate) fn malformed(text: impl Into<String>) -> Self {
        Self::lasting(Error::Malformed(text.into()))
    }

    /// A reply with an error status.
    pub(crate) fn from_response(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        secrets: &Secrets,
    ) -> Self {
        let body = String::from_utf8_lossy(body);
        let json: Option<Value> = serde_json::from_str(&body).ok();
        let message = json.as_ref().and_then(message_of);
        let text = match message {
            Some(message) => message,
            None if body.trim().is_empty() => format!("the model provider answered {status}"),
            None => {
                let body = secrets.clean(&body, BODY_SHOWN);
                format!("the model provider answered {status}: {body}")
            }
        };
        if status == StatusCode::PAYMENT_REQUIRED || json.is_some_and(|json| is_unpaid(&json)) {
            return Self::lasting(Error::QuotaExhausted(text));
        }
        Self::from_status(status.as_u16(), text, retry_after(headers))
    }

    /// An error object that came inside a stream.
    pub(crate) fn from_event(error: &Value) -> Self {
        let text = message_of(error).unwrap_or_else(|| error.to_string());
        if is_unpaid(error) {
            return Self::lasting(Error::QuotaExhausted(text));
        }
        let code = |key: &str| {
            let code = error.get(key)?;
            code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok())
        };
        let status = code("code").or_else(|| code("status")).unwrap_or_else(|| {
            let names = ["type", "code", "status"];
            names.iter().filter_map(|key| error.get(key)?.as_str()).find_map(status_of).unwrap_or(500)
        });
        Self::from_status(status, text, None)
    }

    fn from_status(status: u16, text: String, wait: Option<Duration>) -> Self {
        let again = wait.map_or(Again::Soon, Again::After);
        match status {
            401 | 403 => Self::lasting(Error::Unauthenticated(text)),
            429 => Self { error: Error::RateLimited { message: text, retry_after: wait }, again },
            408 => Self { error: Error::Unavailable(text), again },
            300..500 => Self::lasting(Error::Rejected(text)),
            _ => Self { error: Error::Unavailable(text), again },
        }
    }

    /// The error as it may be shown: no secrets, no control characters, of bounded length.
    pub(crate) fn cleaned(mut self, secrets: &Secrets) -> Self {
        let (Error::RateLimited { message: text, .. }
        | Error::QuotaExhausted(text)
        | Error::Unauthenticated(text)
        | Error::Rejected(text)
        | Error::Unavailable(text)
        | Error::Malformed(text)) = &mut self.error;
        *text = secrets.clean(text, MESSAGE_SHOWN);
        self
    }
}

/// The status that an error's name stands for.
fn status_of(name: &str) -> Option<u16> {
    let name = name.to_ascii_lowercase();
    let names = [
        ("rate_limit", 429),
        ("quota", 429),
        ("resource_exhausted", 429),
        ("authentication", 401),
        ("invalid_api_key", 401),
        ("permission", 403),
        ("overloaded", 529),
        ("invalid", 400),
        ("not_found", 404),
        ("too_large", 413),
        ("context_length", 400),
    ];
    names.iter().find(|(part, _)| name.contains(part)).map(|(_, status)| *status)
}

/// Whether an error says that somebody has to pay first: asking again does not help.
fn is_unpaid(body: &Value) -> bool {
    let error = body.get("error").unwrap_or(body);
    let mut names = ["type", "code"].into_iter().filter_map(|key| error.get(key)?.as_str());
    names.any(|name| UNPAID.contains(&name))
}

/// The message in any of the forms that providers use.
fn message_of(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let places = [error.get("message"), Some(error), body.get("message"), body.get("detail")];
    let found = places.into_iter().flatten().find_map(Value::as_str)?;
    (!found.trim().is_empty()).then(|| found.to_owned())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Texts that no error may show.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(crate) fn new(secrets: Vec<SecretString>) -> Self {
        Self(secrets.into_iter().filter(|secret| !secret.expose_secret().is_empty()).collect())
    }

    /// The text without secrets and control characters, cut to `length` characters.
    pub(crate) fn clean(&self, text: &str, length: usize) -> String {
        let plain = |c: char| if c.is_whitespace() { Some(' ') } else { (!c.is_control()).then_some(c) };
        let plain: String = text.chars().filter_map(plain).collect();
        let hidden = self.0.iter().fold(plain, |text, secret| text.replace(secret.expose_secret(), "[key]"));
        hidden.chars().take(length).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_in_streams_are_told_apart() {
        let kind = |error: Value| Failure::from_event(&error).error.kind();
        assert_eq!(kind(json!({"type": "overloaded_error", "message": "busy"})), "unavailable");
        assert_eq!(kind(json!({"code": 429, "message": "slow down"})), "rate_limited");
        assert_eq!(kind(json!({"code": "rate_limit_exceeded"})), "rate_limited");
        assert_eq!(kind(json!({"code": "401"})), "unauthenticated");
        assert_eq!(kind(json!({"type": "invalid_request_error"})), "rejected");
        assert_eq!(kind(json!("out of memory")), "unavailable");
        assert_eq!(kind(json!({"type": "insufficient_quota", "message": "pay"})), "quota_exhausted");
    }

    #[test]
    fn what_nobody_pays_for_is_not_asked_for_again() {
        let failure = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let headers = HeaderMap::from_iter([("retry-after".parse().unwrap(), "1".parse().unwrap())]);
            Failure::from_response(status, &headers, body.as_bytes(), &Secrets::default())
        };
        let unpaid = Failure::lasting(Error::QuotaExhausted("pay".to_owned()));
        assert_eq!(failure(429, r#"{"error": {"message": "pay", "code": "insufficient_quota"}}"#), unpaid);
        assert_eq!(failure(402, r#"{"error": {"message": "pay"}}"#), unpaid);
        let limited = failure(429, r#"{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}"#);
        assert_eq!(limited.again, Again::After(Duration::from_secs(1)));
    }

    #[test]
    fn texts_are_the_providers_without_secrets() {
        let secrets = Secrets::new(vec!["sk-secret".into(), "".into()]);
        let text = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let failure = Failure::from_response(status, &HeaderMap::new(), body.as_bytes(), &secrets);
            failure.cleaned(&secrets).error.to_string()
        };
        assert_eq!(text(401, r#"{"error": {"message": "bad key sk-sec\u0007ret\n!"}}"#), "bad key [key] !");
        assert_eq!(text(400, r#"[{"error": {"message": "an array"}}]"#), "an array");
        assert_eq!(text(422, r#"{"detail": "no"}"#), "no");
        assert_eq!(text(502, ""), "the model provider answered 502 Bad Gateway");
        let long = text(500, &format!("{}sk-secret", "x".repeat(498)));
        assert!(long.ends_with("xx[k") && !long.contains("sk-"), "{long}");
    }

    #[test]
    fn the_wait_is_read_from_either_header() {
        let wait = |name: &'static str, value: &'static str| {
            retry_after(&HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]))
        };
        assert_eq!(wait("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(wait("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(wait("retry-after", "-1"), None);
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }
}
