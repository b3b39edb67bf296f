//! The server: accepts connections, owns them, and lets them finish when it is told to stop.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use runtime::tls;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{config::Config, router, state::Shared, telemetry};

/// Time that a client may take to send the head of a request.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// Time to write the last frames of answers that were ended, before connections are cut.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Pause after the system refused a connection, for instance because files ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The HTTP edge of Sleuth.
#[derive(Clone, Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
}

impl Gateway {
    /// A gateway in front of the agent that `transport` leads to.
    pub fn new(config: Config, transport: wire::Transport) -> Self {
        telemetry::describe();
        Self { shared: Arc::new(Shared::new(config, transport)) }
    }

    /// All routes and layers.
    pub fn router(&self) -> Router {
        router::router(Arc::clone(&self.shared))
    }

    /// Serves until `shutdown`, and then until running requests have ended or [`Config::drain`] is over.
    ///
    /// # Errors
    /// None at present: a connection that cannot be accepted is logged, and the next one is awaited.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        let router = self.router();
        let config = &self.shared.config;
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < config.max_connections => match accepted {
                    Ok((stream, _)) => {
                        tune(&stream, config);
                        let (router, shutdown) = (router.clone(), shutdown.clone());
                        match config.tls.clone() {
                            Some(tls) => drop(connections.spawn(converse_securely(tls, stream, router, shutdown))),
                            None => drop(connections.spawn(converse(stream, router, shutdown))),
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        self.shared.stopping.cancel();
        if timeout(config.drain, ended(&mut connections)).await.is_err() {
            tracing::warn!(left = connections.len(), "ending requests that did not finish in time");
            self.shared.ending.cancel();
            let _ = timeout(LAST_WORDS, ended(&mut connections)).await;
        }
        Ok(())
    }
}

async fn ended(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

fn tune(stream: &TcpStream, config: &Config) {
    let tuned = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let tuned = tuned.and_then(|()| {
        // The kernel also counts data that waits for the reader's window to open.
        let wait = u32::try_from(config.stalled_reader.as_millis()).unwrap_or(u32::MAX);
        Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, wait)?)
    });
    if let Err(error) = tuned {
        tracing::debug!(%error, "a connection keeps its default options");
    }
}

/// Serves one connection to its end, once the handshake is done.
async fn converse_securely(tls: tls::Server, stream: TcpStream, router: Router, shutdown: CancellationToken) {
    match tls.accept(stream).await {
        Ok(stream) => converse(stream, router, shutdown).await,
        Err(error) => tracing::debug!(%error, "a handshake failed"),
    }
}

/// Serves one connection to its end.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    shutdown: CancellationToken,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_DEADLINE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD_DEADLINE);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection broke");
    }
}
