//! The kubeconfig of a command: the operator's contexts, each leading to the proxy, and no credential.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::upstream::Upstream;

/// Writes the kubeconfig of a command. The API servers keep their addresses, so that what clients keep or show by
/// address is right; the proxy before them is told the context and the command's own token.
///
/// The addresses are of plain HTTP. That is for the way to the proxy, which is the machine's own loopback; from there
/// on it is what the operator's kubeconfig says.
pub(super) fn kubeconfig<'a>(
    upstreams: impl Iterator<Item = &'a Upstream>,
    current: Option<&str>,
    proxy: SocketAddr,
    token: &str,
) -> String {
    let (mut clusters, mut contexts) = (Vec::new(), Vec::new());
    for (index, upstream) in upstreams.enumerate() {
        let name = &upstream.name;
        let leads = json!({
            "server": format!("http://{}{}", authority(upstream), upstream.server.path()),
            "proxy-url": format!("http://{index}:{token}@{proxy}"),
        });
        clusters.push(json!({"name": name, "cluster": leads}));
        let mut context = json!({"cluster": name, "user": ""});
        if let Some(namespace) = &upstream.namespace {
            context["namespace"] = Value::from(namespace.as_str());
        }
        contexts.push(json!({"name": name, "context": context}));
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "clusters": clusters, "contexts": contexts, "users": [],
        "current-context": current.unwrap_or_default(),
    })
    .to_string()
}

/// How requests name an API server.
pub(super) fn authority(upstream: &Upstream) -> String {
    let server = &upstream.server;
    let port = server.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", server.host_str().unwrap_or_default())
}
