//! Settings of the gateway.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use grants::SigningKey;
use http::{HeaderValue, Uri};
use runtime::{auth::ApiKey, tls};

use crate::passing::Passed;

/// Settings of the gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The operator's key. With it, every request must present it or a key that the agent keeps, the health routes
    /// excepted. Default: none, and then a browser guard protects the server instead.
    pub api_key: Option<ApiKey>,
    /// Whether a key is asked for even if `api_key` is none: one that the agent keeps. Default: no.
    pub needs_key: bool,
    /// Secures connections. Default: none, and then they are in the clear.
    pub tls: Option<tls::Server>,
    /// Signs what people approve; executors know its public half. Default: none, and then nothing can be approved.
    pub signing_key: Option<SigningKey>,
    /// Names, beside `localhost` and loopback addresses, that a server without a key answers to. No ports.
    /// Default: none.
    pub allowed_hosts: Vec<String>,
    /// Origins whose pages may use the server (CORS). Default: none.
    pub allowed_origins: Vec<Origin>,
    /// Headers of a question that go along with it, for toolsets to send on. Default: none.
    pub passed_headers: Vec<Passed>,
    /// Largest request body, in bytes. Default: 20 MiB.
    pub body_limit: usize,
    /// The same for requests that bring a long input for a model that works by code. Default: 60 MiB.
    pub input_limit: usize,
    /// What all request bodies may take together, in bytes, until their questions are at the agent. Default: 512 MiB.
    pub body_room: usize,
    /// Time that a request body may take to arrive. Default: 60 s.
    pub body_deadline: Duration,
    /// Time from a question to the end of its answer. Default: 35 min, more than a run may take.
    pub answer_deadline: Duration,
    /// Questions that are answered at the same time, streamed or not. Default: 1024.
    pub max_answers: usize,
    /// Connections that are open at the same time; further ones wait to be accepted. Default: 16384.
    pub max_connections: usize,
    /// How long an agent is looked for that goes on with a run whose agent is lost. Default: 20 s.
    pub agent_patience: Duration,
    /// How long the stream of a session lasts before its reader comes back, give or take a fifth. Default: 5 min.
    pub stream_time: Duration,
    /// Silence after which a stream gets a comment. Default: 15 s.
    pub heartbeat: Duration,
    /// Time that a client may leave data unread before its connection is dropped (Linux). Default: 60 s.
    pub stalled_reader: Duration,
    /// Time that running requests get to finish once the server is told to stop. Default: 20 s.
    pub drain: Duration,
    /// Send the model list as JSON inside a string, as HolmesGPT does. Default: off.
    pub model_list_as_string: bool,
    /// Answer a question for an unknown model with the default model, as HolmesGPT does, instead of refusing
    /// it. Default: off.
    pub unknown_model_falls_back: bool,
    /// What `GET /metrics` returns. Default: nothing.
    pub metrics: MetricsText,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            api_key: None,
            needs_key: false,
            tls: None,
            signing_key: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            passed_headers: Vec::new(),
            body_limit: 20 << 20,
            input_limit: 60 << 20,
            body_room: 512 << 20,
            body_deadline: Duration::from_secs(60),
            answer_deadline: Duration::from_secs(35 * 60),
            max_answers: 1024,
            max_connections: 16_384,
            agent_patience: Duration::from_secs(20),
            stream_time: Duration::from_secs(300),
            heartbeat: Duration::from_secs(15),
            stalled_reader: Duration::from_secs(60),
            drain: Duration::from_secs(20),
            model_list_as_string: false,
            unknown_model_falls_back: false,
            metrics: MetricsText::default(),
        }
    }
}

impl Config {
    /// Whether requests without a key are answered.
    pub(crate) fn is_open(&self) -> bool {
        self.api_key.is_none() && !self.needs_key
    }
}

/// Renders the metrics of the process in Prometheus' text format.
#[derive(Clone)]
pub struct MetricsText(Arc<dyn Fn() -> String + Send + Sync>);

impl MetricsText {
    /// Wraps a renderer.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(render))
    }

    pub(crate) fn render(&self) -> String {
        (self.0)()
    }
}

impl Default for MetricsText {
    fn default() -> Self {
        Self::new(String::new)
    }
}

impl fmt::Debug for MetricsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetricsText")
    }
}

/// A web origin: scheme, host and port, such as `https://console.example:8443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

/// The text is not an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an origin: it must look like https://host or https://host:port")]
pub struct BadOrigin(String);

impl FromStr for Origin {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let bad = || BadOrigin(text.to_owned());
        let origin = text.trim_end_matches('/').to_ascii_lowercase();
        let uri: Uri = origin.parse().map_err(|_| bad())?;
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(bad());
        };
        let exact = format!("{}://{authority}", uri.scheme_str().unwrap_or_default()) == origin;
        if !exact || authority.as_str().contains(['@', '*']) {
            return Err(bad());
        }
        HeaderValue::try_from(origin).map(Self).map_err(|_| bad())
    }
}

impl Origin {
    pub(crate) fn header(&self) -> &HeaderValue {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_scheme_host_and_port() {
        for good in ["https://a.example", "http://localhost:3000", "HTTPS://A.example/"] {
            let origin: Origin = good.parse().unwrap();
            assert_eq!(origin.header(), good.to_ascii_lowercase().trim_end_matches('/'), "{good}");
        }
        for bad in
            ["*", "", "null", "a.example", "ftp://a.example", "https://a.example/x", "https://u@a.example"]
        {
            assert_eq!(bad.parse::<Origin>(), Err(BadOrigin(bad.to_owned())), "{bad}");
        }
    }
}
