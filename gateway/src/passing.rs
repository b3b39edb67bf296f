//! Headers of a request that go along with its question, for toolsets to send on.

use std::{collections::HashMap, fmt, str::FromStr};

use http::{
    HeaderMap, HeaderName,
    header::{AUTHORIZATION, COOKIE, HOST, PROXY_AUTHORIZATION, SET_COOKIE},
};

/// What is for this server, and nobody else.
const OWN: [HeaderName; 6] =
    [AUTHORIZATION, COOKIE, SET_COOKIE, PROXY_AUTHORIZATION, HOST, HeaderName::from_static("x-api-key")];

/// The name of a header that is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed(HeaderName);

/// A header that cannot be passed on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header `{0}` cannot be passed on")]
pub struct NotPassed(String);

impl FromStr for Passed {
    type Err = NotPassed;

    fn from_str(text: &str) -> Result<Self, NotPassed> {
        let name: Option<HeaderName> = text.trim().parse().ok();
        name.filter(|name| !OWN.contains(name)).map(Self).ok_or_else(|| NotPassed(text.to_owned()))
    }
}

/// Headers of a request that are passed on. No log shows their values.
#[derive(Clone, Default)]
pub(crate) struct PassedHeaders(HashMap<String, String>);

impl fmt::Debug for PassedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl PassedHeaders {
    /// Those of the listed headers that a request has.
    pub(crate) fn of(headers: &HeaderMap, listed: &[Passed]) -> Self {
        let found = listed.iter().filter_map(|Passed(name)| {
            let value = headers.get(name)?.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        Self(found.collect())
    }

    pub(crate) fn to_wire(&self) -> HashMap<String, String> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_passed_and_never_a_key_of_this_server() {
        for own in ["Authorization", "cookie", "X-API-Key", "host", "a b", ""] {
            assert_eq!(own.parse::<Passed>(), Err(NotPassed(own.to_owned())));
        }
        let listed = ["X-Tenant", "X-Missing"].map(|name| name.parse().unwrap());
        let headers = [("x-tenant", "blue"), ("x-other", "red")];
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let passed = PassedHeaders::of(&HeaderMap::from_iter(headers), &listed);
        assert_eq!(passed.to_wire(), HashMap::from([("x-tenant".to_owned(), "blue".to_owned())]));
        assert!(!format!("{passed:?}").contains("blue"));
    }
}
