//! The proxy of one command: a listener that knows the command's token, for as long as the command runs.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, Method, Request, Response, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};
use tracing::Instrument as _;

use super::{
    forward::Route,
    generated,
    status::{Body, Reason, failure, whole},
};

/// Connections of one command at the same time.
const CONNECTIONS: usize = 128;
/// How long a client may take to say what it wants.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// A pause after a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// What one command needs to reach clusters: a kubeconfig, and someone who listens where it leads.
#[derive(Debug)]
pub struct Pass {
    door: Door,
    current: Option<String>,
    channels: CancellationToken,
}

/// The way of one command to the clusters. Dropping it ends every connection.
#[derive(Debug)]
pub struct Gate {
    _serving: AbortOnDropHandle<()>,
    _channels: DropGuard,
}

impl Pass {
    /// `current` is the context that is used unless another is named; `channels` ends what the routes have open.
    pub(super) fn new(routes: Vec<Arc<Route>>, current: Option<String>, channels: CancellationToken) -> Self {
        let token = SecretString::from(uuid::Uuid::new_v4().simple().to_string());
        Self { door: Door { token, routes }, current, channels }
    }

    /// What is to be in the file that `KUBECONFIG` names for the command, if it finds the proxy at this port of its
    /// own loopback.
    pub fn kubeconfig(&self, port: u16) -> String {
        let upstreams = self.door.routes.iter().map(|route| &*route.upstream);
        let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        generated::kubeconfig(upstreams, self.current.as_deref(), proxy, self.door.token.expose_secret())
    }

    /// Serves the command until the gate is dropped.
    ///
    /// # Errors
    /// If the listener cannot be used.
    pub fn serve(self, listener: std::net::TcpListener) -> io::Result<Gate> {
        listener.set_nonblocking(true)?;
        let serving =
            tokio::spawn(serve(TcpListener::from_std(listener)?, Arc::new(self.door)).in_current_span());
        Ok(Gate { _serving: AbortOnDropHandle::new(serving), _channels: self.channels.drop_guard() })
    }
}

async fn serve(listener: TcpListener, door: Arc<Door>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Small answers are waited for.
        let _ = stream.set_nodelay(true);
        let (door, place) = (Arc::clone(&door), Arc::new(place));
        let connection = async move {
            let service = service_fn(|request| answer(Arc::clone(&door), Arc::clone(&place), request));
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            // A client may leave at any time.
            let _ = serving.await;
        };
        connections.spawn(connection.in_current_span());
        while connections.try_join_next().is_some() {}
    }
}

/// Who may come in, and where to.
#[derive(Debug)]
struct Door {
    token: SecretString,
    routes: Vec<Arc<Route>>,
}

/// The right of a connection to be open. Whatever it becomes after HTTP holds it on.
pub(super) type Place = Arc<OwnedSemaphorePermit>;

type Answer = Result<Response<Body>, std::convert::Infallible>;

async fn answer(door: Arc<Door>, place: Place, mut request: Request<Incoming>) -> Answer {
    let Some(route) = door.route(&request) else {
        let mut response =
            failure(Reason::Unauthorized, "This proxy serves one command of Sleuth, and this is another.");
        *response.status_mut() = http::StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        response.headers_mut().insert(header::PROXY_AUTHENTICATE, HeaderValue::from_static("Basic"));
        return Ok(response);
    };
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    if authority.is_none_or(|asked| !asked.eq_ignore_ascii_case(&generated::authority(&route.upstream))) {
        return Ok(failure(Reason::Forbidden, "This proxy leads to the API servers of its kubeconfig only."));
    }
    if request.method() == Method::CONNECT {
        route.channels.spawn(inside(Arc::clone(route), place, request));
        return Ok(Response::new(whole("")));
    }
    request.extensions_mut().insert(place);
    Ok(route.answer(request).await)
}

/// Serves a client that wants to speak to the API server as if there were no proxy, as those do that open channels.
async fn inside(route: Arc<Route>, place: Place, request: Request<Incoming>) {
    let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
    let service = service_fn(|mut request: Request<Incoming>| {
        let route = Arc::clone(&route);
        request.extensions_mut().insert(Arc::clone(&place));
        async move { Answer::Ok(route.answer(request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(upgraded, service)
        .with_upgrades();
    // A client may leave at any time.
    let _ = serving.await;
}

impl Door {
    /// The context that a request names, if it has the token.
    fn route(&self, request: &Request<Incoming>) -> Option<&Arc<Route>> {
        let header = request.headers().get(header::PROXY_AUTHORIZATION)?.to_str().ok()?;
        let said = BASE64_STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
        let (context, token) = std::str::from_utf8(&said).ok()?.split_once(':')?;
        let known = bool::from(token.as_bytes().ct_eq(self.token.expose_secret().as_bytes()));
        if known { self.routes.get(context.parse::<usize>().ok()?) } else { None }
    }
}
