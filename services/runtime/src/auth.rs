//! API keys.

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

/// A key that callers must present.
#[derive(Clone, Debug)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// Wraps the text of a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(SecretString::from(key.into()))
    }

    /// Whether this is the key. Takes the same time wherever the two differ.
    pub fn matches(&self, presented: &str) -> bool {
        self.0.expose_secret().as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// The key's text, for the one who presents it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// Whether headers carry the key: `X-API-Key` first, then `Authorization: Bearer` in any case. A right
/// `X-API-Key` counts whatever the other says.
pub fn is_authorized(headers: &http::HeaderMap, key: &ApiKey) -> bool {
    presented(headers).any(|presented| key.matches(presented))
}

/// The keys that headers carry: `X-API-Key` first, then `Authorization: Bearer` in any case.
pub fn presented(headers: &http::HeaderMap) -> impl Iterator<Item = &str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    header("x-api-key").into_iter().chain(header("authorization").and_then(bearer))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_key_counts_wherever_it_is() {
        let key = ApiKey::new("secret");
        let headers = |pairs: &[(&'static str, &'static str)]| {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
        };
        for (pairs, expected) in [
            (&[("x-api-key", "secret")] as &[_], true),
            (&[("authorization", "bEaReR secret")], true),
            (&[("x-api-key", "secret"), ("authorization", "Bearer wrong")], true),
            (&[("x-api-key", "wrong"), ("authorization", "Bearer secret")], true),
            (&[("x-api-key", "secre")], false),
            (&[("authorization", "secret")], false),
            (&[("authorization", "Basic secret")], false),
            (&[], false),
        ] {
            assert_eq!(is_authorized(&headers(pairs), &key), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        assert!(!format!("{:?}", ApiKey::new("secret")).contains("secret"));
    }
}
