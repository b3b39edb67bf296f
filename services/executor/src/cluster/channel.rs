//! Channels into a cluster, such as `kubectl exec` opens: bytes in both directions once both sides have left HTTP.

use http::{HeaderMap, HeaderName, Response, StatusCode, header, request::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    gate::Place,
    status::{Body, whole},
};

/// Headers with which both sides agree on what they will speak.
const AGREED: [&str; 6] = [
    "upgrade",
    "x-stream-protocol-version",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-accept",
];

/// A client's wish to leave HTTP.
pub(super) struct Wish {
    upgrade: Option<OnUpgrade>,
    place: Option<Place>,
}

impl Wish {
    /// Takes the wish out of a request, and adds what the other side must know of it.
    pub(super) fn take(parts: &mut Parts, headers: &mut HeaderMap) -> Self {
        for name in AGREED {
            for value in parts.headers.get_all(name) {
                headers.append(HeaderName::from_static(name), value.clone());
            }
        }
        headers.insert(header::CONNECTION, http::HeaderValue::from_static("Upgrade"));
        Self { upgrade: parts.extensions.remove(), place: parts.extensions.remove() }
    }
}

/// Where the channels of one command run. They end with its token.
#[derive(Clone, Debug)]
pub(super) struct Channels(pub(super) CancellationToken);

impl Channels {
    /// Runs what one connection does after HTTP.
    pub(super) fn spawn(&self, channel: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.0.clone().run_until_cancelled_owned(channel).in_current_span());
    }

    /// Tells the client to go on, and carries what either side says.
    pub(super) fn open(&self, wish: Wish, response: reqwest::Response) -> Response<Body> {
        let mut answer = Response::new(whole(""));
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        answer.headers_mut().insert(header::CONNECTION, http::HeaderValue::from_static("Upgrade"));
        for name in AGREED {
            for value in response.headers().get_all(name) {
                answer.headers_mut().append(HeaderName::from_static(name), value.clone());
            }
        }
        self.spawn(carry(wish, response));
        answer
    }
}

async fn carry(wish: Wish, response: reqwest::Response) {
    let Wish { upgrade: Some(client), place: _place } = wish else { return };
    let Ok((client, mut server)) = tokio::try_join!(async { client.await.map_err(drop) }, async {
        response.upgrade().await.map_err(drop)
    },) else {
        return;
    };
    // Either side may end it at any time.
    let _ = copy_bidirectional(&mut TokioIo::new(client), &mut server).await;
}
