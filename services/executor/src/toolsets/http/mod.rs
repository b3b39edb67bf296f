//! Toolsets of `type: http`: one tool that asks HTTP APIs which the operator lists.
//!
//! * `endpoint`: which hosts, paths and methods, and how they are asked
//! * `arguments`: what a model may say
//! * `resolve`: addresses that no name may stand for
//! * `ask`: a request on its way out, and its answer

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use reqwest::{Client, Method, header::HeaderMap, redirect};
use secrecy::SecretString;
use serde_json::{Value, json};

mod arguments;
mod ask;
mod endpoint;
mod resolve;

use super::{file, headers::Headers, tool::one_line};
use crate::{
    policy::Effect,
    tools::{Ask, Decision, Plan, Presentation, Remote, Settings, Work},
};
use arguments::Arguments;
use ask::Outgoing;
use endpoint::Endpoint;
use resolve::Guarded;

/// Time to connect.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time to say that there was no answer in time.
const TO_SAY_SO: Duration = Duration::from_secs(1);
/// How long a health check may take.
const CHECK_TIME: Duration = Duration::from_secs(10);

/// The tool of such a toolset.
#[derive(Debug)]
pub(crate) struct HttpTool {
    pub(crate) name: String,
    pub(crate) description: String,
    toolset: Arc<str>,
    endpoints: Vec<Endpoint>,
    /// Sent with every request.
    headers: Headers,
    timeout: Duration,
    client: Client,
}

impl HttpTool {
    /// Understands the settings, or says what is wrong. Notes variables that are missing in `missing`.
    pub(super) fn new(
        toolset: &Arc<str>,
        config: file::HttpConfig,
        environment: &dyn Fn(&str) -> Option<String>,
        missing: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        if config.endpoints.is_empty() {
            return Err("it needs `endpoints`".to_owned());
        }
        super::warn_of_unknown(toolset, config.unknown.keys());
        let endpoints = config.endpoints.into_iter();
        let endpoints: Vec<_> =
            endpoints.map(|own| Endpoint::new(own, environment, missing)).collect::<Result<_, _>>()?;
        let headers =
            Headers::new(config.default_headers.iter().chain(&config.extra_headers), environment, missing)?;
        let listed = endpoints.iter().flat_map(Endpoint::addresses).collect();
        // The proxy of the environment would look names up itself, and a redirect could lead anywhere.
        let mut client = Client::builder()
            .no_proxy()
            .dns_resolver(Arc::new(Guarded::new(listed)))
            .connect_timeout(CONNECT_TIME)
            .redirect(redirect::Policy::none());
        if !config.verify_ssl {
            tracing::warn!(toolset = &**toolset, "certificates of its servers are not checked");
            client = client.tls_danger_accept_invalid_certs(true);
        }
        let hosts: Vec<_> = endpoints.iter().flat_map(Endpoint::hosts).collect();
        Ok(Self {
            name: format!("{}_request", toolset.replace(['/', '-', '.'], "_")),
            description: format!("Asks an HTTP API. Hosts: {}.", hosts.join(", ")),
            toolset: Arc::clone(toolset),
            headers,
            timeout: Duration::from_secs(config.timeout_seconds.max(1)),
            client: client.build().map_err(|error| format!("no HTTP client can be made: {error}"))?,
            endpoints,
        })
    }

    /// Whether what is to be asked before anything else answers.
    pub(super) async fn check(&self) -> Result<(), String> {
        for endpoint in &self.endpoints {
            let Some(url) = endpoint.health() else { continue };
            let mut own = self.headers.fixed();
            endpoint.authorize(&mut own);
            let (url, headers) = (url.clone(), HeaderMap::new());
            let shown = url.to_string();
            let outgoing = Outgoing { method: Method::GET, url, headers, own, body: None };
            if let Presentation::Error { error, .. } = ask::ask(&self.client, outgoing, CHECK_TIME).await {
                return Err(format!("the health check of {shown} failed: {error}"));
            }
        }
        Ok(())
    }

    pub(crate) fn toolset(&self) -> &str {
        &self.toolset
    }

    /// The JSON Schema of its arguments.
    pub(crate) fn schema(&self) -> Value {
        let methods: BTreeSet<_> = self.endpoints.iter().flat_map(Endpoint::methods).collect();
        json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The whole address, on one of the hosts."},
                "method": {"type": "string", "enum": methods, "description": "GET unless given."},
                "body": {"type": "string", "description": "The body, as JSON text."},
                "headers": {
                    "type": "string",
                    "description": "A JSON object with more headers, such as Accept. Credentials are sent anyway.",
                },
            },
            "required": ["url"],
        })
    }

    /// Plans a call. What is wrong with it is part of the plan, so that the model can correct itself.
    pub(crate) fn plan(self: &Arc<Self>, settings: &Settings, arguments_json: &str) -> Plan {
        self.read(settings, arguments_json).unwrap_or_else(|reason| Plan {
            description: self.name.clone(),
            effect: Effect::Read,
            decision: Decision::Deny(format!("refused: {reason}")),
        })
    }

    fn read(&self, settings: &Settings, arguments_json: &str) -> Result<Plan, String> {
        let Arguments { url, method, body, headers } = Arguments::read(arguments_json)?;
        let endpoint = self.endpoint(&url)?;
        if !endpoint.methods().any(|own| own == method.as_str()) {
            let methods: Vec<_> = endpoint.methods().collect();
            return Err(format!("{method} is not allowed there, only {}", methods.join(", ")));
        }
        let description = one_line(&format!("{method} {url}"));
        let mut all = self.headers.render(&settings.headers)?;
        endpoint.authorize(&mut all);
        let outgoing = Outgoing { method: method.clone(), url, headers, own: all, body };
        let timeout = self.timeout.min(settings.longest_timeout);
        let client = self.client.clone();
        let answer = async move { ask::ask(&client, outgoing, timeout).await }.boxed();
        let remote = Remote { invocation: description.clone(), timeout: timeout + TO_SAY_SO, answer };
        let work = Work::Remote(remote);
        let (effect, decision) = match only_reads(&method) {
            true => (Effect::Read, Decision::Allow(work)),
            false if settings.saved.whole => (Effect::Mutation, Decision::Allow(work)),
            false => (Effect::Mutation, Decision::Ask(self.asks(&method, work))),
        };
        Ok(Plan { description, effect, decision })
    }

    fn asks(&self, method: &Method, work: Work) -> Ask {
        Ask {
            reason: format!("{method} may change something."),
            refusal: format!(
                "refused: {method} may change something, and needs the approval of a person, which is not \
                 available here. Nothing was sent."
            ),
            prefixes: vec![self.name.clone()],
            work,
        }
    }

    fn endpoint(&self, url: &reqwest::Url) -> Result<&Endpoint, String> {
        self.endpoints.iter().find(|own| own.covers(url)).ok_or_else(|| {
            let listed: Vec<_> = self.endpoints.iter().map(Endpoint::shown).collect();
            format!("that address is not listed. These are: {}", listed.join("; "))
        })
    }

    /// Values that it sends and that must not be seen.
    pub(super) fn secrets(&self) -> impl Iterator<Item = SecretString> {
        self.endpoints.iter().flat_map(Endpoint::secrets).chain(self.headers.secrets())
    }
}

fn only_reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
