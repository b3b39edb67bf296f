//! The toolset file as it is written: HolmesGPT's `toolsets` and `mcp_servers`.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Keys that mean nothing here.
type Unknown = Map<String, Value>;

/// The whole file. What a toolset holds is read later, so that an error can name it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct File {
    #[serde(default)]
    pub(super) toolsets: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) mcp_servers: BTreeMap<String, Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Toolset {
    #[serde(default)]
    pub(super) description: String,
    #[serde(default = "yes")]
    pub(super) enabled: bool,
    #[serde(default)]
    pub(super) prerequisites: Vec<Prerequisite>,
    #[serde(default)]
    pub(super) llm_instructions: String,
    #[serde(default)]
    pub(super) approval_required_tools: Vec<String>,
    #[serde(default)]
    pub(super) restricted_tools: Vec<String>,
    #[serde(default)]
    pub(super) transformers: Vec<Transformer>,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) config: Value,
    #[serde(default)]
    pub(super) tools: Vec<Tool>,
    /// Known to HolmesGPT's consoles; models see none of it.
    #[serde(default, rename = "docs_url")]
    _docs_url: Value,
    #[serde(default, rename = "icon_url")]
    _icon_url: Value,
    #[serde(default, rename = "tags")]
    _tags: Value,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Prerequisite {
    Command { command: String, expected_output: Option<String> },
    Environment { env: Vec<String> },
}

#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) user_description: Option<String>,
    pub(super) command: Option<String>,
    pub(super) script: Option<String>,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, Parameter>,
    /// Seconds.
    pub(super) timeout: Option<u64>,
    pub(super) effect: Option<Effect>,
    #[serde(default)]
    pub(super) transformers: Vec<Transformer>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// What a command does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effect {
    Read,
    Mutation,
}

/// What becomes of results before a model reads them.
#[derive(Debug, Deserialize)]
pub(super) struct Transformer {
    pub(super) name: String,
    #[serde(default)]
    pub(super) config: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct LlmSummarize {
    /// Characters that a result may have as it is.
    #[serde(default = "thousand")]
    pub(super) input_threshold: u64,
    #[serde(default)]
    pub(super) prompt: String,
    #[serde(default)]
    pub(super) fast_model: String,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Parameter {
    #[serde(default, rename = "type")]
    pub(super) kind: Kind,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default = "yes")]
    pub(super) required: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}

/// The settings of a toolset of `type: http`.
#[derive(Debug, Deserialize)]
pub(super) struct HttpConfig {
    #[serde(default)]
    pub(super) endpoints: Vec<Endpoint>,
    #[serde(default)]
    pub(super) default_headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) extra_headers: BTreeMap<String, String>,
    #[serde(default = "half_a_minute")]
    pub(super) timeout_seconds: u64,
    #[serde(default = "yes")]
    pub(super) verify_ssl: bool,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Endpoint {
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    #[serde(default = "any")]
    pub(super) paths: Vec<String>,
    #[serde(default = "get")]
    pub(super) methods: Vec<String>,
    #[serde(default)]
    pub(super) auth: Auth,
    /// Must answer for the toolset to work.
    pub(super) health_check_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Auth {
    #[default]
    None,
    Basic {
        username: SecretString,
        password: SecretString,
    },
    Bearer {
        token: SecretString,
    },
    Header {
        name: String,
        value: SecretString,
    },
}

/// The settings of `prometheus/metrics`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PrometheusConfig {
    pub(super) prometheus_url: Option<String>,
    #[serde(default, alias = "additional_headers", alias = "prometheus_headers")]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpServer {
    #[serde(default)]
    pub(super) description: String,
    #[serde(default = "yes")]
    pub(super) enabled: bool,
    #[serde(default)]
    pub(super) llm_instructions: String,
    /// Patterns of the tools that may be called without asking.
    #[serde(default)]
    pub(super) allowed_tools: Vec<String>,
    /// Patterns of those that may not, though.
    #[serde(default)]
    pub(super) approval_required_tools: Vec<String>,
    #[serde(default)]
    pub(super) restricted_tools: Vec<String>,
    #[serde(default)]
    pub(super) transformers: Vec<Transformer>,
    #[serde(default)]
    pub(super) config: McpConfig,
    /// HolmesGPT's older place for it.
    pub(super) url: Option<String>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct McpConfig {
    pub(super) mode: Option<Mode>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) extra_headers: BTreeMap<String, String>,
    /// Seconds that a call may take.
    pub(super) timeout_seconds: Option<u64>,
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default, rename = "icon_url")]
    _icon_url: Value,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    StreamableHttp,
    Stdio,
    Sse,
}

fn yes() -> bool {
    true
}

fn half_a_minute() -> u64 {
    30
}

fn any() -> Vec<String> {
    vec!["*".to_owned()]
}

fn get() -> Vec<String> {
    vec!["GET".to_owned()]
}

fn thousand() -> u64 {
    1000
}
