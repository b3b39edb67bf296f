//! Where to listen and whom to call.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::{
    dial::{self, CONNECT_TIMEOUT, Way},
    tls,
};

/// Where to listen: `HOST:PORT` with a numeric host, or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// An address cannot be read or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an address.
    #[error("`{0}` is not an address: write HOST:PORT with a numeric host, or unix:PATH")]
    Unreadable(String),
    /// Not a URL.
    #[error("`{0}` is not the address of a service: write http://HOST:PORT, https://HOST:PORT or unix:PATH")]
    NotAService(String),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// Listening failed.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: Address,
        /// Why.
        source: std::io::Error,
    },
    /// Others could reach it, and nothing keeps them out.
    #[error(
        "refusing to listen on {0}, which is reachable from other machines, without a key: set SLEUTH_API_KEY \
         or --require-keys, or listen on a loopback address"
    )]
    Exposed(Address),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        text.parse().map(Self::Tcp).map_err(|_| Error::Unreadable(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An open listener.
#[derive(Debug)]
pub enum Listener {
    /// On a TCP address.
    Tcp(TcpListener),
    /// On a TCP address, under TLS.
    Tls(TcpListener, tls::Server),
    /// On a Unix socket.
    Unix(UnixListener),
}

impl Address {
    /// Listens there. A Unix socket that nobody uses any more is replaced.
    ///
    /// # Errors
    /// [`Error::Exposed`] for an address beyond loopback unless `has_key`; [`Error::Listen`] if it fails.
    pub async fn listen(&self, has_key: bool) -> Result<Listener, Error> {
        let failed = |source| Error::Listen { address: self.clone(), source };
        match self {
            Self::Tcp(address) if !has_key && !address.ip().is_loopback() => {
                Err(Error::Exposed(self.clone()))
            }
            Self::Tcp(address) => TcpListener::bind(address).await.map(Listener::Tcp).map_err(failed),
            Self::Unix(path) => {
                remove_stale(path).await;
                UnixListener::bind(path).map(Listener::Unix).map_err(failed)
            }
        }
    }
}

async fn remove_stale(path: &Path) {
    let used = UnixStream::connect(path).await.is_ok();
    if !used {
        // Binding reports whatever is wrong with the path.
        let _ = std::fs::remove_file(path);
    }
}

impl Listener {
    /// The same under TLS, if there is a way. A Unix socket stays as it is: both its ends are on this machine.
    #[must_use]
    pub fn under(self, tls: Option<tls::Server>) -> Self {
        match (self, tls) {
            (Self::Tcp(listener), Some(tls)) => Self::Tls(listener, tls),
            (listener, _) => listener,
        }
    }

    /// Where it listens; the real port if port 0 was asked for.
    ///
    /// # Errors
    /// If the operating system does not say.
    pub fn address(&self) -> std::io::Result<Address> {
        match self {
            Self::Tcp(listener) | Self::Tls(listener, _) => listener.local_addr().map(Address::Tcp),
            Self::Unix(listener) => {
                let path = listener.local_addr()?.as_pathname().map(Path::to_owned);
                Ok(Address::Unix(path.unwrap_or_default()))
            }
        }
    }
}

/// A channel to a service at `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`, or at several of these, separated
/// by commas: the first that answers. It connects when it is first used, and again when the connection is lost.
///
/// # Errors
/// [`Error::NotAService`] if an address cannot be read, [`Error::Tls`] if this machine trusts nobody.
pub fn channel(service: &str) -> Result<Channel, Error> {
    channel_under(service, || tls::Client::load(None, None))
}

/// The same, with a way to secure connections to `https://HOST:PORT`.
///
/// # Errors
/// As for [`channel`].
pub fn channel_under(
    services: &str,
    client: impl Fn() -> Result<tls::Client, tls::Error>,
) -> Result<Channel, Error> {
    channel_at(services, None, client)
}

/// A channel to a service, or to one of the machines of its host.
pub(crate) fn channel_at(
    services: &str,
    at: Option<SocketAddr>,
    client: impl Fn() -> Result<tls::Client, tls::Error>,
) -> Result<Channel, Error> {
    let way = |service: &str| match service.strip_prefix("unix:") {
        Some(path) => Ok(Way::Unix(path.into())),
        None => Ok::<_, Error>(Way::to(&endpoint(service)?, at, &client)?),
    };
    let ways: Arc<[_]> = services.split(',').map(|service| way(service.trim())).collect::<Result<_, _>>()?;
    let connector = service_fn(move |_: Uri| {
        let ways = Arc::clone(&ways);
        async move { dial::connect(&ways).await.map(TokioIo::new) }
    });
    let first = services.split(',').next().unwrap_or_default();
    Ok(endpoint(first.trim())?.connect_with_connector_lazy(connector))
}

/// What is to be known to call a service.
pub(crate) fn endpoint(service: &str) -> Result<Endpoint, Error> {
    if service.starts_with("unix:") {
        return Ok(tuned(Endpoint::from_static("http://unix")));
    }
    let unreadable = || Error::NotAService(service.to_owned());
    let endpoint = Endpoint::from_shared(service.to_owned()).map_err(|_| unreadable())?;
    let scheme = endpoint.uri().scheme_str();
    if endpoint.uri().host().is_none() || !matches!(scheme, Some("http" | "https")) {
        return Err(unreadable());
    }
    Ok(tuned(endpoint))
}

fn tuned(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(16 << 20)
}
