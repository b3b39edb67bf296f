//! What a request asks an API server for, told from its method, path and headers, and whether that only reads.

use http::{HeaderMap, Method, header, request::Parts};
use percent_encoding::percent_decode_str;

use super::target::{Path, Target};

/// Paths beside the API that say how the server is.
const ABOUT_THE_SERVER: &[&str] =
    &["version", "healthz", "livez", "readyz", "openapi", "metrics", ".well-known", "openid"];
/// A request as the API server will understand it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) verb: &'static str,
    /// The path, in the one way to write it.
    pub(super) path: String,
    pub(super) target: Target,
    pub(super) watches: bool,
    method: Method,
    upgrades: bool,
    impersonates: bool,
}

/// Why a request is not sent on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

impl Asked {
    /// Understands a request to a server whose API is below `base`. What cannot be understood is an error.
    pub(super) fn read(parts: &Parts, base: &str) -> Result<Self, Refusal> {
        let Path { text, target, watched } = Path::read(parts.uri.path(), base)?;
        let watches = watched || parts.uri.query().is_some_and(asks_to_watch);
        let named = matches!(&target, Target::Object(object) if object.name.is_some());
        let is_object = matches!(&target, Target::Object(_));
        Ok(Self {
            verb: verb(&parts.method, is_object, named, watches),
            path: text,
            target,
            watches,
            method: parts.method.clone(),
            upgrades: upgrades(&parts.headers),
            impersonates: parts.headers.keys().any(|name| name.as_str().starts_with("impersonate-")),
        })
    }

    /// Why it may do more than read. What is not known to only read may do more.
    pub(super) fn writes(&self) -> Option<&'static str> {
        if self.impersonates {
            return Some("it acts as someone else");
        }
        if self.upgrades {
            return Some("it opens a channel");
        }
        match (&self.method, &self.target) {
            (&Method::GET | &Method::HEAD | &Method::OPTIONS, target) => match target {
                Target::Discovery => None,
                Target::Server(first) if ABOUT_THE_SERVER.contains(&first.as_str()) => None,
                Target::Server(_) => Some("what this path does is not known"),
                Target::Object(object) => object.opens(),
            },
            (&Method::POST, Target::Object(object)) if object.is_question() => None,
            _ => Some("it changes the cluster"),
        }
    }

    pub(super) fn opens_channel(&self) -> bool {
        self.upgrades
    }

    pub(super) fn impersonates(&self) -> bool {
        self.impersonates
    }

    /// Whether the answer may hold values of Secrets.
    pub(super) fn shows_secrets(&self) -> bool {
        matches!(&self.target, Target::Object(object) if object.resource == "secrets")
    }
}

fn asks_to_watch(query: &str) -> bool {
    query.split('&').any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        percent_decode_str(name).decode_utf8_lossy() == "watch" && !matches!(value, "false" | "0")
    })
}

fn upgrades(headers: &HeaderMap) -> bool {
    let connection = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    headers.contains_key(header::UPGRADE)
        || connection
            .flat_map(|value| value.split(','))
            .any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

/// What the API server calls it.
fn verb(method: &Method, is_object: bool, named: bool, watches: bool) -> &'static str {
    match *method {
        Method::GET | Method::HEAD if !is_object => "get",
        Method::GET | Method::HEAD => match (watches, named) {
            (true, _) => "watch",
            (false, true) => "get",
            (false, false) => "list",
        },
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        Method::OPTIONS => "options",
        _ => "do something unknown to",
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn asked(line: &str, headers: &[(&str, &str)]) -> Asked {
        let (method, path) = line.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(format!("http://server{path}"));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Asked::read(&request.body(()).unwrap().into_parts().0, "/").unwrap()
    }

    #[test]
    fn what_reads_passes() {
        for line in [
            "GET /api",
            "GET /apis/apps/v1",
            "GET /openapi/v3",
            "HEAD /version",
            "GET /api/v1/pods?watch=true",
            "GET /api/v1/namespaces/shop/pods/p/log?follow=true",
            "GET /api/v1/namespaces/shop/pods/p/status",
            "GET /apis/metrics.k8s.io/v1beta1/pods",
            "GET /apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/p/http_requests",
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
        ] {
            assert_eq!(asked(line, &[]).writes(), None, "{line}");
        }
    }

    #[test]
    fn what_may_do_more_needs_a_person() {
        for line in [
            "POST /api/v1/namespaces/shop/pods",
            "PUT /api/v1/namespaces/shop/pods/p",
            "PATCH /api/v1/namespaces/shop/pods/p/status",
            "DELETE /api/v1/namespaces/shop/pods",
            "GET /api/v1/namespaces/shop/pods/p/exec?command=id",
            "GET /api/v1/namespaces/shop/pods/p/attach",
            "GET /api/v1/namespaces/shop/pods/p/portforward",
            "GET /api/v1/namespaces/shop/services/s/proxy/delete",
            "GET /api/v1/nodes/n/proxy",
            "GET /apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachineinstances/x/console",
            "GET /logs/kube-apiserver.log",
            "GET /debug/pprof/profile",
            "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x",
            "POST /api/v1/namespaces/shop/serviceaccounts/default/token",
            "TRACE /api/v1/pods",
            "NONSENSE /api/v1/pods",
        ] {
            assert!(asked(line, &[]).writes().is_some(), "{line}");
        }
    }

    #[test]
    fn channels_and_other_identities_need_a_person_also_when_they_read() {
        let line = "GET /api/v1/pods?watch=true";
        for header in [
            ("upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("impersonate-user", "admin"),
            ("impersonate-extra-a", "b"),
        ] {
            assert!(asked(line, &[header]).writes().is_some(), "{header:?}");
        }
    }

    #[test]
    fn secrets_are_known_in_every_path() {
        for line in [
            "GET /api/v1/secrets",
            "GET /api/v1/namespaces/shop/secrets/db",
            "GET /api/v1/watch/secrets",
            "PATCH /api/v1/namespaces/shop/secrets/db",
        ] {
            assert!(asked(line, &[]).shows_secrets(), "{line}");
        }
        assert!(!asked("GET /api/v1/configmaps", &[]).shows_secrets());
    }

    #[test]
    fn verbs_are_those_of_the_api_server() {
        for (line, verb, watches) in [
            ("GET /api/v1/pods", "list", false),
            ("GET /api/v1/pods?watch=0", "list", false),
            ("GET /api/v1/pods?w%61tch", "watch", true),
            ("GET /api/v1/namespaces/shop/pods/p", "get", false),
            ("DELETE /api/v1/pods", "deletecollection", false),
            ("GET /version", "get", false),
        ] {
            let asked = asked(line, &[]);
            assert_eq!((asked.verb, asked.watches), (verb, watches), "{line}");
        }
    }
}
