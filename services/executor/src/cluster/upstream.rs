//! One API server as one context sees it: how to reach it, and as whom.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::{
    Certificate, Client, Proxy, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{net::lookup_host, sync::Mutex};

use super::{
    credential::{self, Credential, Identity},
    kubeconfig::{Cluster, Context, User},
};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How often a connection that is waited on is asked whether it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Why a request did not reach its API server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Credential(#[from] credential::Error),
    #[error("the server `{0}` is no HTTP address")]
    Server(String),
    #[error("`{what}` is not usable: {problem}")]
    Setting { what: &'static str, problem: String },
    #[error("{}", chain(.0))]
    Http(#[from] reqwest::Error),
}

/// A context in use.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) server: Url,
    cluster: Cluster,
    credential: Credential,
    /// As whom the kubeconfig's user acts.
    acting: HeaderMap,
    clients: Mutex<Vec<(ClientKey, Client)>>,
}

/// What two requests must share to share connections.
#[derive(Clone, Debug)]
struct ClientKey {
    certificate: Option<Arc<SecretString>>,
    purpose: Purpose,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Requests,
    /// It leaves HTTP behind, which only HTTP/1.1 can.
    Upgrade,
}

impl Upstream {
    /// A context whose server is an address. What else is wrong with it shows at its first use.
    pub(super) fn new(context: Context) -> Result<Self, Error> {
        let server = Url::parse(&context.cluster.server).ok();
        let http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let invalid = || Error::Server(context.cluster.server.clone());
        Ok(Self {
            server: server.filter(http).ok_or_else(invalid)?,
            credential: Credential::new(&context).unwrap_or_else(|why| Credential::Unusable(why.to_string())),
            acting: acting(&context.user)?,
            name: context.name,
            namespace: context.namespace,
            cluster: context.cluster,
            clients: Mutex::default(),
        })
    }

    /// What stands for all contexts when there are none to be had.
    pub(super) fn unusable(why: String) -> Result<Self, Error> {
        let cluster = Cluster { server: "http://unusable.invalid".to_owned(), ..Cluster::default() };
        let context =
            Context { name: "unusable".to_owned(), namespace: None, cluster, user: User::default() };
        Ok(Self { credential: Credential::Unusable(why), ..Self::new(context)? })
    }

    /// Sends a request for a path of this server. Ends when the answer begins.
    pub(super) async fn send(
        &self,
        purpose: Purpose,
        method: Method,
        path_and_query: &str,
        mut headers: HeaderMap,
        body: reqwest::Body,
    ) -> Result<reqwest::Response, Error> {
        let identity = self.credential.identity().await?;
        let client = self.client(&identity, purpose).await?;
        if let Some(authorization) = identity.authorization {
            headers.insert(http::header::AUTHORIZATION, authorization);
        }
        for (name, value) in &self.acting {
            headers.append(name, value.clone());
        }
        let url = format!("{}{path_and_query}", self.origin()?);
        let sent = client.request(method, url).headers(headers).body(body).send().await;
        let response = sent.map_err(reqwest::Error::without_url)?;
        if response.status() == http::StatusCode::UNAUTHORIZED {
            self.credential.was_refused().await;
        }
        Ok(response)
    }

    /// Where requests go. For another TLS name this is that name, which resolves to the server.
    fn origin(&self) -> Result<String, Error> {
        let invalid = || Error::Server(self.cluster.server.clone());
        let host = match self.tls_name() {
            Some(name) => name.to_owned(),
            None => self.server.host_str().ok_or_else(invalid)?.to_owned(),
        };
        let port = self.server.port_or_known_default().ok_or_else(invalid)?;
        Ok(format!("{}://{host}:{port}", self.server.scheme()))
    }

    fn tls_name(&self) -> Option<&str> {
        let own = self.cluster.tls_server_name.as_deref().filter(|name| !name.is_empty())?;
        (self.server.host_str() != Some(own) && self.server.scheme() == "https").then_some(own)
    }

    async fn client(&self, identity: &Identity, purpose: Purpose) -> Result<Client, Error> {
        let same = |key: &ClientKey| {
            key.purpose == purpose
                && match (&key.certificate, &identity.certificate) {
                    (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                    (None, None) => true,
                    (Some(_), None) | (None, Some(_)) => false,
                }
        };
        let mut clients = self.clients.lock().await;
        if let Some((_, client)) = clients.iter().find(|(key, _)| same(key)) {
            return Ok(client.clone());
        }
        let client = self.build(identity, purpose)?;
        // A credential that was replaced does not come back.
        clients.retain(|(key, _)| key.purpose != purpose);
        clients.push((ClientKey { certificate: identity.certificate.clone(), purpose }, client.clone()));
        Ok(client)
    }

    fn build(&self, identity: &Identity, purpose: Purpose) -> Result<Client, Error> {
        let cluster = &self.cluster;
        let mut client = Client::builder()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIME)
            .tcp_keepalive(KEEP_ALIVE)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .tls_danger_accept_invalid_certs(cluster.insecure_skip_tls_verify);
        if purpose == Purpose::Upgrade {
            client = client.http1_only();
        }
        let authority = credential::pem(
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_ref(),
            "certificate authority",
        )?;
        if let Some(authority) = authority {
            client = client.tls_certs_only(Certificate::from_pem_bundle(&authority)?);
        }
        if let Some(certificate) = &identity.certificate {
            let pem = certificate.expose_secret().as_bytes();
            client = client.identity(reqwest::Identity::from_pem(pem)?);
        }
        if let Some(proxy) = cluster.proxy_url.as_ref().filter(|url| !url.is_empty()) {
            client = client.proxy(Proxy::all(proxy)?);
        }
        if let Some(name) = self.tls_name() {
            client = self.renamed(client, name)?;
        }
        Ok(client.build()?)
    }

    fn renamed(&self, client: reqwest::ClientBuilder, name: &str) -> Result<reqwest::ClientBuilder, Error> {
        let fail =
            |problem: &str| Err(Error::Setting { what: "tls-server-name", problem: problem.to_owned() });
        if name.parse::<std::net::IpAddr>().is_ok() {
            return fail("it is an address");
        }
        if self.cluster.proxy_url.as_ref().is_some_and(|url| !url.is_empty()) {
            return fail("there is also a proxy-url");
        }
        let host = self.server.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Ok(client.no_proxy().dns_resolver(Renamed(host)))
    }
}

/// Finds this host whatever name is asked for.
struct Renamed(String);

impl Resolve for Renamed {
    fn resolve(&self, _: Name) -> Resolving {
        let host = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((host, 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn acting(user: &User) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &str| {
        let invalid = |_| Error::Setting { what: "as", problem: "it cannot be sent".to_owned() };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(()))?;
        headers.append(name, HeaderValue::from_str(value).map_err(|_| invalid(()))?);
        Ok::<_, Error>(())
    };
    for (name, value) in [("impersonate-user", &user.as_user), ("impersonate-uid", &user.as_uid)] {
        if let Some(value) = value {
            add(name, value)?;
        }
    }
    for group in user.as_groups.iter().flatten() {
        add("impersonate-group", group)?;
    }
    for (key, values) in user.as_user_extra.iter().flatten() {
        for value in values {
            add(&format!("impersonate-extra-{key}"), value)?;
        }
    }
    Ok(headers)
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut said: Vec<String> = Vec::new();
    for cause in causes.map(ToString::to_string) {
        if said.last().is_none_or(|last| !last.contains(&cause)) {
            said.push(cause);
        }
    }
    said.join(": ")
}
