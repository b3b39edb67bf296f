//! Ways to a service, tried in turn until one of them answers.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tonic::transport::Endpoint;

use crate::tls;

/// How long a connection may take to come up, with all ways tried.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// One way to a service.
#[derive(Clone)]
pub(crate) enum Way {
    /// A socket whose other end is a process of the same user.
    Unix(PathBuf),
    /// A machine, or the one among those of a name, and how to be sure that it is the right one.
    Tcp { host: String, port: u16, at: Option<SocketAddr>, tls: Option<tls::Client> },
}

impl Way {
    /// The way to an endpoint. `client` secures connections to `https`.
    pub(crate) fn to(
        endpoint: &Endpoint,
        at: Option<SocketAddr>,
        client: impl Fn() -> Result<tls::Client, tls::Error>,
    ) -> Result<Self, tls::Error> {
        let uri = endpoint.uri();
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let (tls, usual) =
            if uri.scheme_str() == Some("https") { (Some(client()?), 443) } else { (None, 80) };
        Ok(Self::Tcp { host, port: uri.port_u16().unwrap_or(usual), at, tls })
    }

    async fn connect(&self) -> io::Result<Box<dyn Connection>> {
        match self {
            Self::Unix(path) => Ok(Box::new(connect_own(path).await?)),
            Self::Tcp { host, port, at, tls } => {
                let stream = match at {
                    Some(address) => TcpStream::connect(address).await?,
                    None => TcpStream::connect((host.as_str(), *port)).await?,
                };
                stream.set_nodelay(true)?;
                match tls {
                    Some(client) => Ok(Box::new(client.connect(host, stream).await?)),
                    None => Ok(Box::new(stream)),
                }
            }
        }
    }
}

/// Connects by the first way that works. None of them may take the time of the others.
pub(crate) async fn connect(ways: &[Way]) -> io::Result<Box<dyn Connection>> {
    let share = CONNECT_TIMEOUT / u32::try_from(ways.len()).unwrap_or(u32::MAX).max(1);
    let mut failed = io::ErrorKind::NotConnected.into();
    for way in ways {
        failed = match timeout(share, way.connect()).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
    }
    Err(failed)
}

/// Connects to a socket whose other end is a process of the same user.
async fn connect_own(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    check_peer(&stream)?;
    Ok(stream)
}

/// Whether the other end of a Unix socket is a process of the same user.
pub(crate) fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let peer = stream.peer_cred()?.uid();
    if peer == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let text = format!("the other end of the socket belongs to user {peer}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn whoever_answers_first_is_connected_to() {
        let way =
            |at: SocketAddr| Way::Tcp { host: at.ip().to_string(), port: at.port(), at: None, tls: None };
        let (gone, there) = (TcpListener::bind("127.0.0.1:0").await, TcpListener::bind("127.0.0.1:0").await);
        let (gone, there) = (gone.unwrap(), there.unwrap());
        let unix = Way::Unix("/nonexistent/socket".into());
        let ways = [unix, way(gone.local_addr().unwrap()), way(there.local_addr().unwrap())];
        drop(gone);
        let (connected, accepted) = tokio::join!(connect(&ways), there.accept());
        assert!(connected.is_ok() && accepted.is_ok());
        drop(there);
        let refused = connect(&ways).await.err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
    }
}
