//! One request through the proxy: judged, sent on with the executor's credential, its answer passed back.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts,
};
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use tracing::Instrument as _;

use super::{
    Access, Impersonate, Secrets, Writes, channel, mask,
    request::{Asked, Refusal},
    status::{Body, Reason, failure, whole},
    upstream::{Purpose, Upstream},
};

/// Requests by what they wanted and what came of it.
const REQUESTS: &str = "sleuth_kubernetes_requests_total";
/// Time until an API server's answer began.
const SECONDS: &str = "sleuth_kubernetes_request_seconds";
/// The most that is read of a request which is looked into.
const BODY_BYTES: usize = 4 << 20;
/// How long the rest of a refused request is read.
const DISCARD_TIME: Duration = Duration::from_secs(5);
/// What an API server is told of a client's wishes. Credentials are none of them.
const PASSED: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONTENT_TYPE,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
];
/// What belongs to a connection.
const HOP_BY_HOP: &[HeaderName] = &[
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// How one command may use one cluster.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) upstream: Arc<Upstream>,
    pub(super) access: Arc<Access>,
    pub(super) secrets: Secrets,
    pub(super) impersonate: Impersonate,
    pub(super) channels: channel::Channels,
}

impl Route {
    /// Answers a request. Nothing that it meets is an error here: the client is told.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let asked = match Asked::read(&parts, self.upstream.server.path()) {
            Ok(asked) => asked,
            Err(Refusal(why)) => {
                return failure(Reason::Forbidden, &format!("Sleuth does not pass this request on: {why}"));
            }
        };
        let resource = asked.target.resource();
        let span = tracing::info_span!(
            "kubernetes",
            otel.name = format!("{} {resource}", asked.verb),
            otel.kind = "client",
            k8s.verb = asked.verb,
            k8s.resource = resource,
            k8s.context = self.upstream.name,
            k8s.audit_id = tracing::field::Empty,
            http.request.method = %parts.method,
            http.response.status_code = tracing::field::Empty,
        );
        let verb = asked.verb;
        let started = Instant::now();
        let response = self.judged(asked, parts, body).instrument(span.clone()).await;
        span.record("http.response.status_code", response.status().as_u16());
        // Names that an API server does not know are anyone's invention.
        let known = if response.status().is_success() { resource } else { String::new() };
        let status = response.status().as_str().to_owned();
        metrics::counter!(REQUESTS, "verb" => verb, "resource" => known, "status" => status).increment(1);
        metrics::histogram!(SECONDS, "verb" => verb).record(started.elapsed());
        response
    }

    async fn judged(&self, asked: Asked, parts: Parts, body: Incoming) -> Response<Body> {
        if let (Writes::Refused, Some(why)) = (self.access.writes, asked.writes()) {
            tracing::info!(verb = asked.verb, resource = asked.target.resource(), why, "refused");
            discard(body).await;
            return failure(Reason::Forbidden, &refusal(&asked, why));
        }
        match self.forward(asked, parts, body).await {
            Ok(response) => response,
            Err(Failed(reason, why)) => failure(reason, &why),
        }
    }

    async fn forward(
        &self,
        asked: Asked,
        mut parts: Parts,
        body: Incoming,
    ) -> Result<Response<Body>, Failed> {
        let masked = self.secrets == Secrets::Masked && asked.shows_secrets();
        let mut headers = self.headers(&asked, &parts)?;
        if masked {
            mask::ask_for_json(&mut headers);
        }
        if masked && asked.opens_channel() {
            return Err(Failed::forbidden("what a channel shows of Secrets cannot be masked"));
        }
        let upgrade = asked.opens_channel().then(|| channel::Wish::take(&mut parts, &mut headers));
        let body = request_body(&asked, &parts.method, body, masked).await?;
        let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}{query}", asked.path);
        let purpose = if upgrade.is_some() { Purpose::Upgrade } else { Purpose::Requests };
        let response =
            self.upstream.send(purpose, parts.method, &target, headers, body).await.map_err(|error| {
                Failed(
                    Reason::Unavailable,
                    format!(
                        "Unable to connect to the server of the context `{}`: {error}",
                        self.upstream.name
                    ),
                )
            })?;
        if let Some(id) = response.headers().get("audit-id").and_then(|id| id.to_str().ok()) {
            tracing::Span::current().record("k8s.audit_id", id);
        }
        match upgrade {
            Some(wish) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Ok(self.channels.open(wish, response))
            }
            Some(_) | None if masked => masked_response(&asked, response).await,
            Some(_) | None => Ok(passed_response(response)),
        }
    }

    /// What the API server is told: the client's wishes, who asks, and for which run.
    fn headers(&self, asked: &Asked, parts: &Parts) -> Result<HeaderMap, Failed> {
        let mut headers = HeaderMap::new();
        for (name, value) in &parts.headers {
            let passed = PASSED.contains(name)
                || name.as_str().starts_with("kubectl-")
                || (asked.impersonates() && name.as_str().starts_with("impersonate-"));
            if passed {
                headers.append(name, value.clone());
            }
        }
        let client = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let agent = format!("{} {}", client.unwrap_or("unknown"), self.access.user_agent());
        headers.insert(header::USER_AGENT, text(&agent)?);
        match self.impersonate {
            Impersonate::Nobody => {}
            Impersonate::Principal if asked.impersonates() => {
                return Err(Failed::forbidden("it would act as someone else than its caller"));
            }
            Impersonate::Principal if self.access.principal.is_empty() => {
                return Err(Failed::forbidden("this executor acts as its caller, who is not known"));
            }
            Impersonate::Principal => {
                headers.insert("impersonate-user", text(&self.access.principal)?);
            }
        }
        Ok(headers)
    }
}

/// Why the proxy answers instead of the API server.
struct Failed(Reason, String);

impl Failed {
    fn forbidden(why: &str) -> Self {
        Self(Reason::Forbidden, format!("Sleuth does not pass this request on: {why}"))
    }
}

fn text(value: &str) -> Result<HeaderValue, Failed> {
    HeaderValue::from_str(value).map_err(|_| Failed::forbidden("a name in it cannot be sent"))
}

fn refusal(asked: &Asked, why: &str) -> String {
    format!(
        "Sleuth refused to {} {}: {why}, and this command may only read. A person must approve the exact command. \
         Nothing was changed.",
        asked.verb, asked.target,
    )
}

/// Reads what belongs to a refused request: a client that still writes would not see why.
async fn discard(body: Incoming) {
    let read = Limited::new(body, BODY_BYTES).collect();
    // A client that is slow, or writes too much, sees a closed connection.
    let _ = tokio::time::timeout(DISCARD_TIME, read).await;
}

async fn request_body(
    asked: &Asked,
    method: &Method,
    body: Incoming,
    masked: bool,
) -> Result<reqwest::Body, Failed> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) || asked.opens_channel() {
        return Ok(reqwest::Body::default());
    }
    let read = Limited::new(body, BODY_BYTES).collect().await;
    let body = read
        .map_err(|error| Failed(Reason::TooLarge, format!("Sleuth cannot read this request: {error}")))?
        .to_bytes();
    if masked && mask::has_masks(&body) {
        return Err(Failed::forbidden(
            "it would write the masks that Sleuth shows instead of values of Secrets. Nothing was changed",
        ));
    }
    Ok(body.into())
}

fn passed_response(response: reqwest::Response) -> Response<Body> {
    let response: Response<reqwest::Body> = response.into();
    let (mut parts, body) = response.into_parts();
    HOP_BY_HOP.iter().for_each(|name| drop(parts.headers.remove(name)));
    Response::from_parts(parts, body.map_err(Into::into).boxed_unsync())
}

async fn masked_response(asked: &Asked, response: reqwest::Response) -> Result<Response<Body>, Failed> {
    let unable = |error: mask::Error| {
        let reason = match error {
            mask::Error::TooLarge => Reason::TooLarge,
            mask::Error::NotJson | mask::Error::Broken(_) => Reason::Unavailable,
        };
        let advice = "Ask for fewer Secrets at once: one namespace, or `--chunk-size=20`.";
        Failed(reason, format!("Sleuth cannot mask the values of Secrets in this answer: {error}. {advice}"))
    };
    let response: Response<reqwest::Body> = response.into();
    let (mut parts, body) = response.into_parts();
    for name in HOP_BY_HOP.iter().chain([&header::CONTENT_LENGTH]) {
        parts.headers.remove(name);
    }
    if parts.headers.contains_key(header::CONTENT_ENCODING) {
        return Err(unable(mask::Error::NotJson));
    }
    if asked.watches && parts.status.is_success() {
        let events = mask::events(body.into_data_stream());
        let frames = events.map_ok(Frame::data).map_err(Into::into);
        return Ok(Response::from_parts(parts, StreamBody::new(frames).boxed_unsync()));
    }
    let body = Limited::new(body, mask::LIMIT).collect().await;
    let body: Bytes = body.map_err(|_| unable(mask::Error::TooLarge))?.to_bytes();
    let shown = if body.is_empty() { body } else { mask::document(&body).map_err(unable)? };
    Ok(Response::from_parts(parts, whole(shown)))
}
