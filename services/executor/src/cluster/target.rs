//! What a path of a Kubernetes API names. It is understood as the API server does it, or not at all, and is sent on
//! as it was understood.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::request::Refusal;

/// What may not stand as it is in a part of a path.
const QUOTED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'^').add(b'`');

/// Parts of an object that are read as the object is. What others do is not known, and some open a channel.
const READABLE_PARTS: &[&str] =
    &["status", "scale", "log", "approval", "resize", "ephemeralcontainers", "finalize"];
/// POST requests that ask what oneself may do or is.
const QUESTIONS: &[(&str, &str)] = &[
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
];

/// A path that was understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The path in the one way to write it.
    pub(super) text: String,
    pub(super) target: Target,
    /// Whether it says to watch what it names.
    pub(super) watched: bool,
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Which kinds there are.
    Discovery,
    /// Something beside the API, by the first part of its path.
    Server(String),
    Object(Object),
}

/// An object, or all of a kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    /// The path after the name.
    pub(super) part: Option<String>,
}

impl Path {
    /// Reads a path of a server whose API is below `base`.
    pub(super) fn read(raw: &str, base: &str) -> Result<Self, Refusal> {
        let segments = segments(raw)?;
        let base: Vec<_> = base.split('/').filter(|segment| !segment.is_empty()).collect();
        if segments.len() < base.len() || segments.iter().zip(&base).any(|(own, base)| own != base) {
            return Err(Refusal(format!("the API of this server is below /{}", base.join("/"))));
        }
        let (target, watched) = target(&segments[base.len()..])?;
        let quoted = segments.iter().map(|segment| utf8_percent_encode(segment, QUOTED).to_string());
        Ok(Self { text: format!("/{}", quoted.collect::<Vec<_>>().join("/")), target, watched })
    }
}

impl Target {
    /// The kind of object, for a metric or a span.
    pub(super) fn resource(&self) -> String {
        match self {
            Self::Discovery => "discovery".to_owned(),
            Self::Server(_) => "server".to_owned(),
            Self::Object(object) => object.kind(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovery => f.write_str("the list of kinds"),
            Self::Server(first) => write!(f, "/{first}"),
            Self::Object(object) => object.fmt(f),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind())?;
        if let Some(name) = &self.name {
            write!(f, " `{name}`")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace `{namespace}`")?;
        }
        Ok(())
    }
}

impl Object {
    /// The kind as kubectl writes it, such as `deployments.apps`, with the part of the object.
    pub(super) fn kind(&self) -> String {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let part = self.part.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
        format!("{}{group}{part}", self.resource)
    }

    /// Why reading it may do more than that.
    pub(super) fn opens(&self) -> Option<&'static str> {
        match &self.part {
            None => None,
            Some(part) if READABLE_PARTS.contains(&part.as_str()) => None,
            // Names of metrics.
            Some(_) if matches!(self.group.as_str(), "custom.metrics.k8s.io" | "external.metrics.k8s.io") => {
                None
            }
            Some(_) => Some("it may open a channel into the cluster"),
        }
    }

    /// Whether creating it only asks something.
    pub(super) fn is_question(&self) -> bool {
        let known =
            QUESTIONS.iter().any(|(group, resource)| self.group == *group && self.resource == *resource);
        known && self.namespace.is_none() && self.name.is_none() && self.part.is_none()
    }
}

/// The parts of a path. One that other servers might read in another way is refused.
fn segments(path: &str) -> Result<Vec<String>, Refusal> {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    inner.split('/').map(segment).collect()
}

fn segment(raw: &str) -> Result<String, Refusal> {
    let text =
        percent_decode_str(raw).decode_utf8().map_err(|_| Refusal("its path is no text".to_owned()))?;
    let odd = |c: char| c == '/' || c == '\\' || c.is_control();
    if text.is_empty() || text == "." || text == ".." || text.contains(odd) {
        return Err(Refusal("its path can be read in several ways".to_owned()));
    }
    Ok(text.into_owned())
}

/// What the parts of a path name, and whether the path says to watch it.
fn target(segments: &[String]) -> Result<(Target, bool), Refusal> {
    let (group, rest) = match segments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return Ok((Target::Server(String::new()), false)),
        ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _] => {
            return Ok((Target::Discovery, false));
        }
        ["api", _, ..] => (String::new(), &segments[2..]),
        ["apis", group, _, ..] => (group.to_owned(), &segments[3..]),
        [first, ..] => return Ok((Target::Server(first.to_owned()), false)),
    };
    let (rest, watched) = match rest.split_first() {
        Some((first, _)) if matches!(first.as_str(), "proxy" | "redirect") => {
            return Err(Refusal(format!("the path prefix `{first}` is not known any more")));
        }
        Some((first, rest)) if first == "watch" && !rest.is_empty() => (rest, true),
        _ => (rest, false),
    };
    let text = |at: usize| rest.get(at).cloned();
    // As the API server does it: `status` and `finalize` are parts of the namespace itself.
    let within = rest.first().is_some_and(|first| first == "namespaces")
        && rest.get(2).is_some_and(|third| !matches!(third.as_str(), "status" | "finalize"));
    let (namespace, from) = if within { (text(1), 2) } else { (None, 0) };
    let part = rest.get(from + 2..).filter(|part| !part.is_empty()).map(|part| part.join("/"));
    let object =
        Object { group, namespace, resource: text(from).unwrap_or_default(), name: text(from + 1), part };
    Ok((Target::Object(object), watched))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(group: &str, namespace: &str, resource: &str, name: &str, part: &str) -> Target {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (group, resource) = (group.to_owned(), resource.to_owned());
        Target::Object(Object {
            group,
            resource,
            namespace: set(namespace),
            name: set(name),
            part: set(part),
        })
    }

    #[test]
    fn paths_are_understood_as_the_api_server_does() {
        for (path, target, watched) in [
            ("/api", Target::Discovery, false),
            ("/apis/apps/v1/", Target::Discovery, false),
            ("/version", Target::Server("version".to_owned()), false),
            ("/api/v1/pods", object("", "", "pods", "", ""), false),
            ("/api/v1/namespaces/shop", object("", "", "namespaces", "shop", ""), false),
            ("/api/v1/namespaces/shop/status", object("", "", "namespaces", "shop", "status"), false),
            ("/api/v1/namespaces/shop/pods/p/log", object("", "shop", "pods", "p", "log"), false),
            ("/api/v1/namespaces/shop/%73ecrets/db", object("", "shop", "secrets", "db", ""), false),
            ("/api/v1/watch/namespaces/shop/secrets", object("", "shop", "secrets", "", ""), true),
            (
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                object("apps", "a", "deployments", "b", "scale"),
                false,
            ),
            ("/api/v1/nodes/n/proxy/run/x", object("", "", "nodes", "n", "proxy/run/x"), false),
        ] {
            let read = Path::read(path, "/").unwrap();
            assert_eq!((read.target, read.watched), (target, watched), "{path}");
        }
    }

    #[test]
    fn a_path_is_sent_on_in_the_one_way_to_write_it() {
        let read = Path::read("/api/v1/namespaces/shop/%73ecrets/system%3Aa%20b%25/", "/").unwrap();
        assert_eq!(read.text, "/api/v1/namespaces/shop/secrets/system:a%20b%25");
    }

    #[test]
    fn what_can_be_read_in_several_ways_is_refused() {
        for path in [
            "//api/v1/pods",
            "/api/v1//secrets",
            "/api/v1/pods/../secrets",
            "/api/v1/pods/%2e%2e/secrets",
            "/api/v1/pods%2fp%2fexec",
            "/api/v1/pods/a%5c..",
            "/api/v1/pods/%00",
            "/api/v1/pods/%ff",
            "/api/v1/proxy/nodes/n",
        ] {
            assert!(Path::read(path, "/").is_err(), "{path}");
        }
    }

    #[test]
    fn a_server_below_a_path_is_asked_below_it() {
        let base = "/k8s/clusters/c-1/";
        let read = Path::read("/k8s/clusters/c-1/api/v1/secrets", base).unwrap();
        assert_eq!(
            (read.text.as_str(), read.target),
            ("/k8s/clusters/c-1/api/v1/secrets", object("", "", "secrets", "", ""))
        );
        assert!(Path::read("/api/v1/secrets", base).is_err());
        assert!(Path::read("/k8s/clusters/c-2/api/v1/secrets", base).is_err());
    }
}
