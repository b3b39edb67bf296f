//! Serving gRPC on whatever an address names.

use std::{io, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_stream::{
    Stream, StreamExt as _,
    wrappers::{TcpListenerStream, UnixListenerStream},
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status, body::Body, codegen::StdError, service::Routes, transport::server::Router};
use tower::{Layer, Service};

use crate::{
    address::Listener,
    auth::{ApiKey, is_authorized},
    dial::check_peer,
    tls::{self, Secured},
};

/// Handshakes of TLS at the same time; further connections wait.
const HANDSHAKES: usize = 256;
/// A pause after a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown`, and then until the calls in progress have ended. On a Unix socket only processes of
/// the same user are served.
///
/// # Errors
/// If the transport fails.
pub async fn serve<L>(
    router: Router<L>,
    listener: Listener,
    shutdown: CancellationToken,
) -> Result<(), tonic::transport::Error>
where
    L: Layer<Routes>,
    L::Service: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    <L::Service as Service<http::Request<Body>>>::Future: Send,
    <L::Service as Service<http::Request<Body>>>::Error: Into<StdError> + Send,
{
    let end = shutdown.cancelled_owned();
    match listener {
        Listener::Tcp(listener) => {
            router.serve_with_incoming_shutdown(connections(listener).map(Ok::<_, io::Error>), end).await
        }
        Listener::Tls(listener, tls) => {
            router.serve_with_incoming_shutdown(secured(listener, tls), end).await
        }
        Listener::Unix(listener) => {
            let incoming = UnixListenerStream::new(listener)
                .filter(|accepted| accepted.as_ref().is_ok_and(|stream| check_peer(stream).is_ok()));
            router.serve_with_incoming_shutdown(incoming, end).await
        }
    }
}

/// The connections of a listener. Where there is no room for one, the next is waited for.
fn connections(listener: TcpListener) -> impl Stream<Item = TcpStream> + Send {
    let accepted = futures_util::StreamExt::then(TcpListenerStream::new(listener), |accepted| async {
        match accepted {
            Ok(stream) => {
                // Slower, but it works without.
                let _ = stream.set_nodelay(true);
                Some(stream)
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                sleep(PAUSE).await;
                None
            }
        }
    });
    accepted.filter_map(|stream| stream)
}

/// The connections of a listener whose handshake is done. Whoever is slow to prove who they are holds nobody up.
pub fn secured(listener: TcpListener, tls: tls::Server) -> impl Stream<Item = io::Result<Secured>> + Send {
    let securing = futures_util::StreamExt::map(connections(listener), move |stream| {
        let tls = tls.clone();
        async move { tls.accept(stream).await.inspect_err(|error| tracing::debug!(%error, "a handshake failed")) }
    });
    futures_util::StreamExt::buffer_unordered(securing, HANDSHAKES).filter(Result::is_ok)
}

/// An interceptor that lets only callers with the key in; everybody if there is none.
pub fn require(key: Option<ApiKey>) -> impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone {
    move |request: Request<()>| match &key {
        Some(key) if !is_authorized(request.metadata().as_ref(), key) => {
            Err(Status::unauthenticated("invalid or missing API key"))
        }
        Some(_) | None => Ok(request),
    }
}
