//! Where to listen and whom to call.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    time::timeout,
};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::tls;

/// How long a connection may take to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

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

/// A channel to a service at `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`. It connects when it is first used,
/// and again when the connection is lost.
///
/// # Errors
/// [`Error::NotAService`] if the address cannot be read, [`Error::Tls`] if this machine trusts nobody.
pub fn channel(service: &str) -> Result<Channel, Error> {
    channel_under(service, || tls::Client::load(None, None))
}

/// The same, with a way to secure connections to `https://HOST:PORT`.
///
/// # Errors
/// As for [`channel`].
pub fn channel_under(
    service: &str,
    client: impl FnOnce() -> Result<tls::Client, tls::Error>,
) -> Result<Channel, Error> {
    if let Some(path) = service.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        let connector = service_fn(move |_: Uri| {
            let path = path.clone();
            async move { connect_own(&path).await.map(TokioIo::new) }
        });
        return Ok(tuned(Endpoint::from_static("http://unix")).connect_with_connector_lazy(connector));
    }
    channel_at(service, None, client)
}

/// A channel to a service at a URL, or to one of the machines of its host.
pub(crate) fn channel_at(
    service: &str,
    at: Option<SocketAddr>,
    client: impl FnOnce() -> Result<tls::Client, tls::Error>,
) -> Result<Channel, Error> {
    let endpoint = endpoint(service)?;
    let host = endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    if endpoint.uri().scheme_str() == Some("https") {
        let (client, port) = (client()?, endpoint.uri().port_u16().unwrap_or(443));
        let connector = service_fn(move |_: Uri| {
            let (client, host) = (client.clone(), host.clone());
            async move {
                let stream = connect(at, &host, port).await?;
                client.connect(&host, stream).await.map(TokioIo::new)
            }
        });
        return Ok(endpoint.connect_with_connector_lazy(connector));
    }
    let port = endpoint.uri().port_u16().unwrap_or(80);
    let connector = service_fn(move |_: Uri| {
        let host = host.clone();
        async move { connect(at, &host, port).await.map(TokioIo::new) }
    });
    Ok(endpoint.connect_with_connector_lazy(connector))
}

async fn connect(at: Option<SocketAddr>, host: &str, port: u16) -> std::io::Result<TcpStream> {
    let connecting = async {
        match at {
            Some(address) => TcpStream::connect(address).await,
            None => TcpStream::connect((host, port)).await,
        }
    };
    let stream = timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| std::io::ErrorKind::TimedOut)??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What is to be known to call a URL.
pub(crate) fn endpoint(service: &str) -> Result<Endpoint, Error> {
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

/// Connects to a socket whose other end is a process of the same user.
async fn connect_own(path: &Path) -> std::io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    check_peer(&stream)?;
    Ok(stream)
}

/// Whether the other end of a Unix socket is a process of the same user.
///
/// # Errors
/// If it is not, or the operating system does not say.
pub fn check_peer(stream: &UnixStream) -> std::io::Result<()> {
    let peer = stream.peer_cred()?.uid();
    if peer == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let text = format!("the other end of the socket belongs to user {peer}");
    Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, text))
}
