//! Tools of MCP servers. The protocol is `rmcp`'s, which only `session` knows.

use std::{collections::BTreeSet, ffi::OsString, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use secrecy::SecretString;
use serde_json::{Map, Value};

mod result;
mod session;
mod stdio;

pub(crate) use session::Connection;

use super::{
    Patterns, Summarize,
    file::{McpServer, Mode},
    fill,
    headers::Headers,
    tool::{is_tool_name, one_line},
    transformer,
};
use crate::{
    policy::Effect,
    redact::names_secret,
    tools::{Decision, Plan, Remote, Settings, Work},
};

/// How long a call may take, unless the operator says it.
const CALL_TIME: Duration = Duration::from_secs(120);

/// An MCP server as the operator describes it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    pub(crate) description: String,
    pub(crate) instructions: String,
    pub(crate) enabled: bool,
    /// What becomes of long results.
    pub(crate) summarize: Option<Arc<Summarize>>,
    /// Tools that run without asking a person.
    allowed: Patterns,
    /// Those that do not, though.
    approval: Patterns,
    restricted: Patterns,
    call_time: Duration,
    transport: Transport,
}

/// How it is reached.
enum Transport {
    Http { url: String, headers: Headers },
    Stdio { command: Vec<String>, environment: Vec<(OsString, OsString)> },
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Http { .. } => "Http",
            Self::Stdio { .. } => "Stdio",
        })
    }
}

impl Server {
    pub(super) fn new(
        name: &str,
        server: McpServer,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let config = server.config;
        let mode =
            config.mode.unwrap_or(if config.command.is_some() { Mode::Stdio } else { Mode::StreamableHttp });
        let transport = match mode {
            Mode::Sse => {
                return Err("mode `sse` is not supported; most servers offer `streamable-http`".to_owned());
            }
            Mode::StreamableHttp => {
                let url = config.url.or(server.url).ok_or("it needs a `url`")?;
                let mut missing = BTreeSet::new();
                let written = config.headers.iter().chain(&config.extra_headers);
                let headers = Headers::new(written, environment, &mut missing)?;
                if let Some(name) = missing.first() {
                    return Err(format!("the variable `{name}` is not set"));
                }
                Transport::Http { url: fill(&url, environment)?, headers }
            }
            Mode::Stdio => {
                let program = config.command.ok_or("it needs a `command`")?;
                let command = std::iter::once(&program).chain(&config.args);
                let variables = config.env.iter().map(|(name, value)| {
                    Ok((OsString::from(name), OsString::from(fill(value, environment)?)))
                });
                Transport::Stdio {
                    command: command.map(|text| fill(text, environment)).collect::<Result<_, _>>()?,
                    environment: variables.collect::<Result<_, String>>()?,
                }
            }
        };
        Ok(Self {
            name: name.into(),
            description: server.description,
            instructions: server.llm_instructions.trim().to_owned(),
            enabled: server.enabled,
            summarize: transformer::summarize(name, &server.transformers)?,
            allowed: Patterns::new(&server.allowed_tools)?,
            approval: Patterns::new(&server.approval_required_tools)?,
            restricted: Patterns::new(&server.restricted_tools)?,
            call_time: config.timeout_seconds.map_or(CALL_TIME, |time| Duration::from_secs(time.max(1))),
            transport,
        })
    }
}

impl Server {
    /// Values that it is given and whose names say that they are secret.
    pub(crate) fn secrets(&self) -> Vec<SecretString> {
        match &self.transport {
            Transport::Http { headers, .. } => headers.secrets().collect(),
            Transport::Stdio { environment, .. } => environment
                .iter()
                .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
                .filter(|(name, _)| names_secret(name))
                .map(|(_, value)| SecretString::from(value))
                .collect(),
        }
    }
}

/// A tool of a server.
#[derive(Debug)]
pub(crate) struct McpTool {
    pub(crate) description: String,
    connection: Arc<Connection>,
    name: String,
    schema: Value,
}

impl McpTool {
    pub(crate) fn server(&self) -> &str {
        &self.connection.server.name
    }

    /// Its name at the server.
    pub(crate) fn remote_name(&self) -> &str {
        &self.name
    }

    /// What becomes of long results.
    pub(crate) fn summarize(&self) -> Option<Arc<Summarize>> {
        self.connection.server.summarize.clone()
    }

    /// Whether the operator lets it run without asking a person.
    pub(crate) fn is_allowed(&self) -> bool {
        let server = &self.connection.server;
        server.allowed.matches(&self.name) && !server.approval.matches(&self.name)
    }

    /// Whether it is for whoever follows a runbook.
    pub(crate) fn is_restricted(&self) -> bool {
        self.connection.server.restricted.matches(&self.name)
    }

    /// Names under which it may be offered, the best first.
    pub(crate) fn names(&self) -> Vec<String> {
        let clean = |name: &str| -> String {
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
            name.chars().map(plain).take(64).collect()
        };
        let names = [clean(&self.name), clean(&format!("{}__{}", self.server(), self.name))];
        names.into_iter().filter(|name| is_tool_name(name)).collect()
    }

    /// The JSON Schema of its arguments.
    pub(crate) fn schema(&self) -> Value {
        self.schema.clone()
    }

    /// Plans a call. Whether it changes something is the server's to know, so that it counts as if it did.
    pub(crate) fn plan(self: &Arc<Self>, settings: &Settings, arguments_json: &str) -> Plan {
        let json = if arguments_json.trim().is_empty() { "{}" } else { arguments_json };
        let arguments: Option<Map<String, Value>> = serde_json::from_str(json).ok();
        let decision = match arguments {
            None => Decision::Deny("refused: the arguments are not a JSON object".to_owned()),
            Some(arguments) => {
                let (tool, headers) = (Arc::clone(self), settings.headers.clone());
                Decision::Allow(Work::Remote(Remote {
                    invocation: self.invocation(json),
                    timeout: self.connection.server.call_time.min(settings.longest_timeout),
                    answer: async move { tool.connection.call(&tool.name, arguments, &headers).await }
                        .boxed(),
                }))
            }
        };
        Plan { description: self.invocation(json), effect: Effect::Mutation, decision }
    }

    fn invocation(&self, json: &str) -> String {
        one_line(&format!("{}: {} {json}", self.server(), self.name))
    }
}
