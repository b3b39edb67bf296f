//! A scripted server: listens, counts, records, and delivers replies well or badly.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    marker::PhantomData,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::script::{Conversation, Reply, Script};

/// A provider's API, from the server's side.
pub trait Api: Send + Sync + 'static {
    /// The provider's name in a model list.
    const NAME: &'static str;
    /// Path of the calls.
    const PATH: &'static str;
    #[doc(hidden)]
    fn render(request: &Value) -> Rendering;
}

/// How one API reads a request and writes the reply to it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Rendering {
    pub(super) conversation: Conversation,
    pub(super) streams: bool,
    pub(super) frames: fn(&Reply) -> Vec<String>,
    pub(super) whole: fn(&Reply) -> Value,
    pub(super) error: fn(u16, &str) -> Value,
    pub(super) error_frame: fn(&str) -> String,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Value,
}

/// A scripted server on a port of its own. Dropping it ends it and every call in flight.
#[derive(Debug)]
pub struct Scripted<A> {
    address: SocketAddr,
    shared: Arc<Shared>,
    _stop: DropGuard,
    api: PhantomData<A>,
}

#[derive(Debug)]
struct Shared {
    requests: Mutex<Vec<Recorded>>,
    failures: Mutex<HashMap<String, usize>>,
    default: Mutex<Script>,
    in_flight: watch::Sender<usize>,
    stop: CancellationToken,
}

impl<A: Api> Scripted<A> {
    /// Starts a server.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            failures: Mutex::default(),
            default: Mutex::default(),
            in_flight: watch::Sender::new(0),
            stop: stop.clone(),
        });
        let router = Router::new().route(A::PATH, post(answer::<A>)).with_state(shared.clone());
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(axum::serve(listener, router).with_graceful_shutdown(stopped).into_future());
        Ok(Self { address, shared, _stop: stop.drop_guard(), api: PhantomData })
    }

    /// Base address for clients, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Follows this script where a conversation has none.
    pub fn say_by_default(&self, script: Script) {
        *lock(&self.shared.default) = script;
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }

    /// Calls that are being answered.
    pub fn in_flight(&self) -> usize {
        *self.shared.in_flight.borrow()
    }

    /// Waits until exactly this many calls are being answered; `false` if that takes longer than `limit`.
    pub async fn until_in_flight(&self, calls: usize, limit: Duration) -> bool {
        let mut in_flight = self.shared.in_flight.subscribe();
        let reached = in_flight.wait_for(|now| *now == calls);
        matches!(tokio::time::timeout(limit, reached).await, Ok(Ok(_)))
    }

    /// Waits until no call is being answered; `false` if that takes longer than `limit`.
    pub async fn until_idle(&self, limit: Duration) -> bool {
        self.until_in_flight(0, limit).await
    }
}

/// Counts a call for as long as it lives.
struct InFlight(Arc<Shared>);

impl InFlight {
    fn new(shared: Arc<Shared>) -> Self {
        shared.in_flight.send_modify(|calls| *calls += 1);
        Self(shared)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|calls| *calls -= 1);
    }
}

async fn answer<A: Api>(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let guard = InFlight::new(shared.clone());
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::BAD_REQUEST, "the body is not JSON").into_response();
    };
    let rendering = A::render(&body);
    lock(&shared.requests).push(Recorded { headers, body });
    let (script, round) = rendering.conversation.script(&lock(&shared.default));
    let served = async {
        if script.hang {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(script.latency_ms)).await;
        match failure(&shared, &script, round) {
            Some(status) => refuse(&rendering, &script, status),
            None => deliver(&rendering, &script, round, guard),
        }
    };
    let stopped = shared.stop.cancelled();
    tokio::select! {
        response = served => response,
        () = stopped => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// The status that this call fails with, if it does.
fn failure(shared: &Shared, script: &Script, round: usize) -> Option<u16> {
    if script.fail_times > 0 {
        let mut failures = lock(&shared.failures);
        let failed = failures.entry(format!("{script:?}")).or_default();
        *failed += 1;
        let status = if script.status == 200 { 503 } else { script.status };
        return (*failed <= script.fail_times).then_some(status);
    }
    (script.status != 200 && round >= script.fail_after).then_some(script.status)
}

fn refuse(rendering: &Rendering, script: &Script, status: u16) -> Response {
    let text = match status {
        401 => "Incorrect API key provided: scripted failure",
        _ => "scripted failure",
    };
    let status_line = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status_line, json((rendering.error)(status, text).to_string())).into_response();
    if let Some(wait) = script.retry_after {
        response.headers_mut().insert("retry-after-ms", wait.into());
    }
    response
}

fn json(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text)
}

fn deliver(rendering: &Rendering, script: &Script, round: usize, guard: InFlight) -> Response {
    let reply = rendering.conversation.reply(script, round);
    if !rendering.streams || script.whole {
        let whole = (rendering.whole)(&reply).to_string();
        return json(if script.malformed { "{garbage".into() } else { whole }).into_response();
    }
    let mut frames = (rendering.frames)(&reply);
    if script.malformed {
        frames.insert(1, "data: {garbage\n\n".into());
    }
    if let Some(text) = &script.error_event {
        frames.truncate(1);
        frames.push((rendering.error_frame)(text));
    }
    let chunks = match script.cut {
        Some(_) => cut(&frames.concat()),
        None => frames.into_iter().map(Bytes::from).collect(),
    };
    let body = Body::from_stream(paced(chunks, script, guard));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Pieces of one to three bytes.
fn cut(text: &str) -> Vec<Bytes> {
    let (mut rest, mut size, mut pieces) = (text.as_bytes(), 0, Vec::new());
    while !rest.is_empty() {
        size = size % 3 + 1;
        let (piece, left) = rest.split_at(size.min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = left;
    }
    pieces
}

fn paced(
    chunks: Vec<Bytes>,
    script: &Script,
    guard: InFlight,
) -> impl stream::Stream<Item = io::Result<Bytes>> + use<> {
    let pause = Duration::from_millis(script.chunk_ms);
    let mut parts: Vec<io::Result<Bytes>> = chunks.into_iter().map(Ok).collect();
    if let Some(sent) = script.break_after {
        parts.truncate(sent);
        parts.push(Err(io::Error::other("scripted break")));
    }
    let stop = guard.0.stop.clone().cancelled_owned();
    stream::iter(parts)
        .enumerate()
        .then(move |(at, part)| {
            let _in_flight = &guard;
            async move {
                if at > 0 && !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                if part.is_err() {
                    // Lets the connection send what it holds.
                    tokio::task::yield_now().await;
                }
                part
            }
        })
        .take_until(stop.map(Ok::<(), Infallible>))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
