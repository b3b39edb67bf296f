//! Flags that several services share.

use std::{net::IpAddr, num::NonZeroU32, path::PathBuf};

use clap::Args;

/// How clusters are linked to agents.
#[derive(Debug, Args)]
pub(crate) struct Links {
    /// Address at which other agents that share the store reach this one's gRPC port, so that each reaches the clusters
    /// of all. They do not unless it is given.
    #[arg(long, env = "SLEUTH_ADVERTISE", value_name = "URL")]
    pub(crate) advertise: Option<String>,
    /// IP address of this agent, where several share the name in --advertise, for which their certificate is.
    #[arg(long, env = "SLEUTH_ADVERTISE_IP", value_name = "IP")]
    pub(crate) advertise_ip: Option<IpAddr>,
    /// Seconds after which an executor that has dialled in is to come again, at the latest; at most 3000. [default: 1800]
    #[arg(long, env = "SLEUTH_LINK_SECONDS", value_name = "SECONDS")]
    pub(crate) link_seconds: Option<u64>,
    /// Whether a model may be asked which of the connected clusters a question is about that names none. [default: true]
    #[arg(long, env = "SLEUTH_NAME_CLUSTERS", value_name = "BOOL")]
    pub(crate) name_clusters: Option<bool>,
}

/// What outlives the process.
#[derive(Debug, Args)]
pub(crate) struct Data {
    /// Folder for what outlives the process. [default: $XDG_STATE_HOME/sleuth or ~/.local/state/sleuth]
    #[arg(long, env = "SLEUTH_DATA_DIR", value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// The gRPC side.
#[derive(Debug, Args)]
pub(crate) struct Grpc {
    /// Where to listen for gRPC. [default: 127.0.0.1:50051]
    #[arg(long, env = "SLEUTH_GRPC", value_name = "ADDRESS")]
    pub(crate) grpc: Option<String>,
}

/// The HTTP side.
#[derive(Debug, Args)]
pub(crate) struct Http {
    /// Where to listen for HTTP. [default: 127.0.0.1:8080]
    #[arg(long, env = "SLEUTH_HTTP", value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Origins whose web pages may use the server. None by default.
    #[arg(long, env = "SLEUTH_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    pub(crate) cors_origins: Option<Vec<String>>,
    /// Host names, besides loopback ones, that a server without a key answers to.
    #[arg(long, env = "SLEUTH_ALLOWED_HOSTS", value_name = "HOST", value_delimiter = ',')]
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// Seconds after which the stream of a session ends for its reader to come back, give or take a fifth.
    /// [default: 300]
    #[arg(long, env = "SLEUTH_STREAM_SECONDS", value_name = "SECONDS")]
    pub(crate) stream_seconds: Option<u64>,
    /// Headers of questions that toolsets may send on, such as X-Tenant. None by default.
    #[arg(long, env = "SLEUTH_PASS_HEADERS", value_name = "NAME", value_delimiter = ',')]
    pub(crate) pass_headers: Option<Vec<String>>,
}

/// Who gets in.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// Ask every caller for a key, of `sleuth keys` or SLEUTH_API_KEY, also on loopback addresses.
    #[arg(long, env = "SLEUTH_REQUIRE_KEYS", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) require_keys: Option<bool>,
}

/// Connections under TLS. To servers at https:// addresses: SLEUTH_TLS_CA names a PEM file of the authorities to trust
/// instead of those of this machine, and the certificate here is shown to whoever asks for one.
#[derive(Debug, Args)]
pub(crate) struct Tls {
    /// PEM file with the certificate of this server, and those between it and its authority.
    #[arg(long, env = "SLEUTH_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file with its key.
    #[arg(long, env = "SLEUTH_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// PEM file of authorities: only clients with a certificate of one of them get in.
    #[arg(long, env = "SLEUTH_TLS_CLIENT_CA", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,
}

/// How often keys of `sleuth keys` may be used.
#[derive(Debug, Args)]
pub(crate) struct Rates {
    /// Requests a minute with one key. [default: 600]
    #[arg(long, env = "SLEUTH_KEY_RATE", value_name = "N")]
    pub(crate) key_rate: Option<NonZeroU32>,
    /// Requests a minute with all keys of an account together. [default: 3000]
    #[arg(long, env = "SLEUTH_ACCOUNT_RATE", value_name = "N")]
    pub(crate) account_rate: Option<NonZeroU32>,
}

/// Where runs are kept, and for how long.
#[derive(Debug, Args)]
pub(crate) struct Storage {
    /// Where runs are kept: `sqlite:`, `sqlite:FOLDER`, `postgres://…` or `memory:`. A URL with a password belongs
    /// into the variable, or the password into SLEUTH_STORE_PASSWORD. [default: sqlite: in the data directory]
    #[arg(long, env = "SLEUTH_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// Days that runs are kept after they have ended. [default: 30]
    #[arg(long, env = "SLEUTH_KEEP_DAYS", value_name = "DAYS")]
    pub(crate) keep_days: Option<u32>,
    /// Bytes of runs that have ended above which the oldest go; in GiB. [default: 10]
    #[arg(long, env = "SLEUTH_KEEP_GIB", value_name = "GIB")]
    pub(crate) keep_gib: Option<u32>,
    /// Seconds that a run goes on after its last reader has left. [default: 60; 0 with memory:]
    #[arg(long, env = "SLEUTH_DISCONNECT_GRACE", value_name = "SECONDS")]
    pub(crate) disconnect_grace: Option<u64>,
}

/// How questions are answered.
#[derive(Debug, Args)]
pub(crate) struct Answering {
    /// YAML file with models, in HolmesGPT's `modelList` format.
    ///
    /// The variable MODEL names the default one, and FAST_MODEL the one that summarises long results where a toolset
    /// wants that; one that is not in the list is asked with API_KEY and API_BASE.
    #[arg(long, env = "MODEL_LIST_FILE_LOCATION", value_name = "FILE")]
    pub(crate) model_list: Option<PathBuf>,
    /// Name of the Kubernetes cluster, for the prompt and for questions that name it. [default: local]
    #[arg(long, env = "CLUSTER_NAME", value_name = "NAME")]
    pub(crate) cluster_name: Option<String>,
    /// Folder with runbooks and skills of your own, each a file NAME/SKILL.md; or with HolmesGPT's catalog.json.
    #[arg(long, env = "SLEUTH_RUNBOOKS", value_name = "FOLDER")]
    pub(crate) runbooks: Option<PathBuf>,
    /// The only sections of the prompt that are on, whatever a request says; `none` for none.
    #[arg(long, env = "ENABLED_PROMPTS", value_name = "KEY", value_delimiter = ',')]
    pub(crate) enabled_prompts: Option<Vec<String>>,
    /// Model calls that a run may make; the last one must answer. [default: 100]
    #[arg(long, env = "MAX_STEPS", value_name = "N")]
    pub(crate) max_steps: Option<u32>,
    /// Price in US dollars that a run may have. No ceiling by default.
    #[arg(long, env = "SLEUTH_MAX_COST", value_name = "USD")]
    pub(crate) max_cost: Option<f64>,
    /// Tokens that a run may use. No ceiling by default.
    #[arg(long, env = "SLEUTH_MAX_TOKENS", value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Seconds after which a run must answer. [default: 1800]
    #[arg(long, env = "SLEUTH_MAX_SECONDS", value_name = "SECONDS")]
    pub(crate) max_seconds: Option<u64>,
    /// Seconds that a call waits for a person while the stream of its run stays open. [default: 600]
    #[arg(long, env = "SLEUTH_DECISION_SECONDS", value_name = "SECONDS")]
    pub(crate) decision_seconds: Option<u64>,
    /// Agents that a run may give parts of its work to, where a request does not speak of them; 0 for none. [default: 4]
    #[arg(long, env = "SLEUTH_SUBAGENTS", value_name = "N")]
    pub(crate) subagents: Option<u32>,
    /// Whether conversations that are too long for the model are compacted. [default: true]
    #[arg(long, env = "ENABLE_CONVERSATION_HISTORY_COMPACTION", value_name = "BOOL")]
    #[arg(value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) compaction: Option<bool>,
    /// Share of the context window above which they are, in percent. [default: 95]
    #[arg(long, env = "CONTEXT_WINDOW_COMPACTION_THRESHOLD_PCT", value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) compaction_percent: Option<u64>,
    /// Runs that may go on at the same time. [default: 1000]
    #[arg(long, env = "SLEUTH_MAX_RUNS", value_name = "N")]
    pub(crate) max_runs: Option<usize>,
    /// Runs of one account that may go on at the same time. Only --max-runs counts by default.
    #[arg(long, env = "SLEUTH_MAX_ACCOUNT_RUNS", value_name = "N")]
    pub(crate) max_account_runs: Option<usize>,
    /// Tokens that an account without a budget of its own may use in a day (UTC). No ceiling by default.
    #[arg(long, env = "SLEUTH_DEFAULT_DAILY_TOKENS", value_name = "N")]
    pub(crate) default_daily_tokens: Option<u64>,
    /// US dollars that it may cost in a day. No ceiling by default.
    #[arg(long, env = "SLEUTH_DEFAULT_DAILY_COST", value_name = "USD")]
    pub(crate) default_daily_cost: Option<f64>,
    /// Seconds that a session waits for the results of its client's tools. [default: 300]
    #[arg(long, env = "SLEUTH_CLIENT_TOOL_SECONDS", value_name = "SECONDS")]
    pub(crate) client_tool_seconds: Option<u64>,
    /// How much clients of sessions are told of an error at most: generic, standard or detailed. [default: standard]
    #[arg(long, env = "SLEUTH_ERROR_DISCLOSURE", value_name = "LEVEL")]
    pub(crate) error_disclosure: Option<String>,
    /// Runs that were asked for with one key and may go on at the same time; one more is refused. [default: no limit]
    #[arg(long, env = "SLEUTH_MAX_KEY_RUNS", value_name = "N")]
    pub(crate) max_key_runs: Option<usize>,
}
