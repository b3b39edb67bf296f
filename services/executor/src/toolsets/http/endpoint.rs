//! Where an HTTP toolset may go, and with which credentials.

use std::{collections::BTreeSet, net::IpAddr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{
    Method, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};

use super::super::{Patterns, file, fill_noting};

/// Hosts with the same paths, methods and credentials.
pub(super) struct Endpoint {
    hosts: Vec<Host>,
    paths: Patterns,
    shown_paths: String,
    methods: Vec<Method>,
    credential: Option<(HeaderName, HeaderValue)>,
    secret: Option<SecretString>,
    /// Must answer for the toolset to work.
    health: Option<Url>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Endpoint").field(&self.shown()).finish()
    }
}

/// A host as it is listed: a name, `*.` and the end of one, or an address; with a scheme and a port or without.
#[derive(Debug)]
struct Host {
    text: String,
    scheme: Option<String>,
    name: String,
    /// Any, if there is none.
    port: Option<u16>,
}

impl Host {
    fn new(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is no host, such as `api.example.com`, `*.example.com` or `https://host:8443`")
        };
        let (scheme, rest) = match text.trim().split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme.to_owned()), rest),
            Some(_) => return Err(wrong()),
            None => (None, text.trim()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let is_address = rest.ends_with(']') || rest.matches(':').count() == 0;
        let (name, port) = match rest.rsplit_once(':') {
            Some((name, port)) if !is_address => (name, Some(port)),
            _ => (rest, None),
        };
        let port = match (port, scheme.as_deref()) {
            (Some("*"), _) | (None, None) => None,
            (Some(port), _) => Some(port.parse().map_err(|_| wrong())?),
            (None, Some("http")) => Some(80),
            (None, Some(_)) => Some(443),
        };
        // As a URL would have it, so that both are written in the same way.
        let plain = name.strip_prefix("*.").unwrap_or(name);
        let host = Url::parse(&format!("http://{plain}/")).ok().filter(|url| url.path() == "/");
        let host = host.as_ref().and_then(Url::host_str).filter(|_| !plain.contains(['*', '@', '?', '#']));
        let host = host.ok_or_else(wrong)?;
        let name = if name == plain { host.to_owned() } else { format!("*.{host}") };
        Ok(Self { text: text.trim().to_owned(), scheme, name, port })
    }

    fn covers(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let is_named = match self.name.strip_prefix('*') {
            Some(end) => host.len() > end.len() && host.ends_with(end),
            None => host == self.name,
        };
        is_named
            && self.scheme.as_deref().is_none_or(|scheme| scheme == url.scheme())
            && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

impl Endpoint {
    pub(super) fn new(
        endpoint: file::Endpoint,
        environment: &dyn Fn(&str) -> Option<String>,
        missing: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        let hosts = endpoint.hosts.iter().map(|host| Host::new(&fill_noting(host, environment, missing)?));
        let hosts: Vec<_> = hosts.collect::<Result<_, String>>()?;
        if hosts.is_empty() {
            return Err("an endpoint needs `hosts`".to_owned());
        }
        let method = |name: &String| {
            let known = [
                Method::GET,
                Method::HEAD,
                Method::OPTIONS,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
            ];
            let method = known.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(name));
            method.ok_or_else(|| format!("`{name}` is no method"))
        };
        let health = |text: &String| -> Result<Url, String> {
            let filled = fill_noting(text, environment, missing)?;
            filled.parse().map_err(|_| "`health_check_url` is no address".to_owned())
        };
        let health = endpoint.health_check_url.as_ref().map(health).transpose()?;
        let (credential, secret) = credential(endpoint.auth, environment, missing)?;
        Ok(Self {
            hosts,
            paths: Patterns::new(&endpoint.paths)?,
            shown_paths: endpoint.paths.join(" "),
            methods: endpoint.methods.iter().map(method).collect::<Result<_, _>>()?,
            credential,
            secret,
            health,
        })
    }

    pub(super) fn health(&self) -> Option<&Url> {
        self.health.as_ref()
    }

    pub(super) fn covers(&self, url: &Url) -> bool {
        self.hosts.iter().any(|host| host.covers(url)) && self.paths.matches(url.path())
    }

    pub(super) fn methods(&self) -> impl Iterator<Item = &str> {
        self.methods.iter().map(Method::as_str)
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.text.as_str())
    }

    /// What is listed, for whoever asked for something else.
    pub(super) fn shown(&self) -> String {
        let (hosts, methods): (Vec<_>, Vec<_>) = (self.hosts().collect(), self.methods().collect());
        format!("{} {} {}", methods.join("/"), hosts.join(" "), self.shown_paths)
    }

    /// Addresses that are listed as such.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.hosts.iter().filter_map(|host| host.name.trim_matches(['[', ']']).parse().ok())
    }

    pub(super) fn authorize(&self, headers: &mut HeaderMap) {
        headers.extend(self.credential.clone());
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = SecretString> {
        self.secret.clone().into_iter()
    }
}

type Credential = (Option<(HeaderName, HeaderValue)>, Option<SecretString>);

fn credential(
    auth: file::Auth,
    environment: &dyn Fn(&str) -> Option<String>,
    missing: &mut BTreeSet<String>,
) -> Result<Credential, String> {
    let mut fill = |text: &SecretString| fill_noting(text.expose_secret(), environment, missing);
    let (name, text, secret) = match auth {
        file::Auth::None => return Ok((None, None)),
        file::Auth::Basic { username, password } => {
            let (user, password) = (fill(&username)?, fill(&password)?);
            (AUTHORIZATION, format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))), password)
        }
        file::Auth::Bearer { token } => {
            let token = fill(&token)?;
            (AUTHORIZATION, format!("Bearer {token}"), token)
        }
        file::Auth::Header { name, value } => {
            let value = fill(&value)?;
            let name = name.parse().map_err(|_| format!("the header `{name}` cannot be sent"))?;
            (name, value.clone(), value)
        }
    };
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| "its credentials cannot be sent in a header".to_owned())?;
    value.set_sensitive(true);
    Ok((Some((name, value)), Some(secret).filter(|secret| !secret.is_empty()).map(SecretString::from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_cover_what_they_say() {
        for (listed, url, covers) in [
            ("api.example.com", "http://api.example.com:81/", true),
            ("API.example.com", "https://api.example.com/", true),
            ("api.example.com", "https://api.example.com.evil/", false),
            ("api.example.com", "https://api.example.com@evil/", false),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://evilexample.com/", false),
            ("example.com:8080", "http://example.com:8080/", true),
            ("example.com:8080", "http://example.com/", false),
            ("https://example.com", "https://example.com/", true),
            ("https://example.com", "http://example.com/", false),
            ("https://example.com", "https://example.com:8443/", false),
            ("https://*.example.com:*", "https://a.example.com:8443/", true),
            ("[::1]:9090", "http://[::1]:9090/", true),
            ("[::1]", "http://[::1]:9090/", true),
            ("169.254.169.254", "http://2852039166/", true),
            ("10.0.0.1", "http://10.0.0.2/", false),
        ] {
            let host = Host::new(listed).unwrap();
            assert_eq!(host.covers(&Url::parse(url).unwrap()), covers, "{listed} {url}");
        }
        for wrong in ["", "*", "*.", "a.*.com", "ftp://a", "a/b", "a:x", "a:0x", "a:70000", "u@a", "http://"]
        {
            assert!(Host::new(wrong).is_err(), "{wrong}");
        }
    }
}
