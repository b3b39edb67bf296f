//! What can be asked of sleuth on a command line. The help texts are the manual.

use std::{num::NonZeroU32, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Finds out why something is broken: reasons with a language model, looks with read-only kubectl and bash, and
/// shows every step.
///
/// Without any configuration the built-in investigator `builtin/triage` answers, which needs no key. With
/// ANTHROPIC_API_KEY, OPENAI_API_KEY or a model list, a language model does.
///
/// Every option can be given as a flag, as an environment variable, or in a YAML file (--config), in this order.
#[derive(Debug, Parser)]
#[command(name = "sleuth", version, after_help = EXAMPLES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) general: General,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  sleuth ask \"Why is checkout failing?\"
  sleuth serve
  curl -N localhost:8080/api/chat -H 'content-type: application/json' \\
       -d '{\"ask\": \"What is wrong in namespace shop?\", \"stream\": true}'

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

/// Options of every subcommand.
#[derive(Debug, Args)]
pub(crate) struct General {
    /// YAML file with settings; its keys are the long names of the flags.
    #[arg(long, global = true, env = "SLEUTH_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which log lines are written, such as `info` or `sleuth=debug,warn`.
    #[arg(long, global = true, env = "SLEUTH_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// How log lines look.
    #[arg(long, global = true, env = "SLEUTH_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve HTTP and gRPC from one process, with its own executor beside it.
    Serve(Serve),
    /// Serve only the agent: gRPC in, models and executors out.
    Agent(Agent),
    /// Serve only an executor: it runs kubectl and bash.
    Executor(Executor),
    /// Serve only the gateway: HTTP in, an agent behind it.
    Gateway(Gateway),
    /// Ask a question, watch the investigation, print the answer.
    Ask(Ask),
    /// List the models that a question may name.
    Models(Client),
    /// List the tools that models may use.
    Tools(Client),
    /// List the clusters that a server reaches: its own, and those whose executors have dialled in.
    Clusters(Server),
    /// List, inspect and cancel the runs of a server.
    Runs(Runs),
    /// List, create and switch off accounts.
    Accounts(Accounts),
    /// List, create, revoke and rotate keys.
    Keys(Keys),
    /// Show what was asked and done, by whom, on whose approval, with what result.
    Audit(Audit),
}

/// `sleuth serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) http: Http,
    /// Where to listen for gRPC. [default: 127.0.0.1:50051]
    #[arg(long, env = "SLEUTH_GRPC", value_name = "ADDRESS")]
    pub(crate) grpc: Option<String>,
    /// YAML file with more toolsets and MCP servers, in HolmesGPT's format.
    #[arg(long, env = "SLEUTH_TOOLSETS", value_name = "FILE")]
    pub(crate) toolsets: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) access: Access,
    #[command(flatten)]
    pub(crate) tls: Tls,
    #[command(flatten)]
    pub(crate) rates: Rates,
    #[command(flatten)]
    pub(crate) links: Links,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) storage: Storage,
    #[command(flatten)]
    pub(crate) answering: Answering,
}

/// `sleuth gateway`.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    #[command(flatten)]
    pub(crate) http: Http,
    /// The agent behind it. [default: http://127.0.0.1:50051]
    #[arg(long, env = "SLEUTH_AGENT", value_name = "URL")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) access: Access,
    #[command(flatten)]
    pub(crate) tls: Tls,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// `sleuth agent`.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Where to listen for gRPC. [default: 127.0.0.1:50051]
    #[arg(long, env = "SLEUTH_GRPC", value_name = "ADDRESS")]
    pub(crate) grpc: Option<String>,
    /// The executors that run its tools, separated by commas, or `none` for those of clusters only. All addresses of a
    /// name count, and are looked up again. [default: http://127.0.0.1:50052]
    #[arg(long, env = "SLEUTH_EXECUTOR", value_name = "URL")]
    pub(crate) executor: Option<String>,
    /// Give work only to those of them that have these labels (SLEUTH_EXECUTOR_LABELS of the executor). The label
    /// `toolset` is that of all toolsets of an executor that work.
    #[arg(long, env = "SLEUTH_EXECUTOR_SELECTOR", value_name = "KEY=VALUE", value_delimiter = ',')]
    #[arg(value_parser = label)]
    pub(crate) executor_selector: Option<Vec<(String, String)>>,
    /// Where to serve /metrics and /healthz over HTTP. Not served unless given.
    #[arg(long, env = "SLEUTH_METRICS", value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    #[command(flatten)]
    pub(crate) access: Access,
    #[command(flatten)]
    pub(crate) tls: Tls,
    #[command(flatten)]
    pub(crate) rates: Rates,
    #[command(flatten)]
    pub(crate) links: Links,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) storage: Storage,
    #[command(flatten)]
    pub(crate) answering: Answering,
}

/// `sleuth executor`.
#[derive(Debug, Args)]
pub(crate) struct Executor {
    /// Where to listen for gRPC: HOST:PORT or unix:PATH. [default: 127.0.0.1:50052]
    #[arg(long, env = "SLEUTH_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Dial out to these agents, separated by commas, and serve inside of these connections: for a cluster that cannot
    /// be reached. It does not listen then, unless --listen is given too.
    #[arg(long, env = "SLEUTH_CONNECT", value_name = "URL", value_delimiter = ',')]
    pub(crate) connect: Vec<String>,
    /// The cluster that it belongs to, to be checked against its key.
    #[arg(long, env = "SLEUTH_CLUSTER", value_name = "NAME", default_value = "", requires = "connect")]
    pub(crate) cluster: String,
    /// Token with which the cluster joins, once; `sleuth keys create --join` makes it. The variable is safer: flags are
    /// seen by others.
    #[arg(long, env = "SLEUTH_JOIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(crate) join_token: Option<secrecy::SecretString>,
    /// Name of this executor, unique in its cluster. [default: the host's name]
    #[arg(long, env = "SLEUTH_EXECUTOR_NAME", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where to serve /metrics and /healthz over HTTP. Not served unless given.
    #[arg(long, env = "SLEUTH_METRICS", value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// YAML file with more toolsets and MCP servers, in HolmesGPT's format.
    #[arg(long, env = "SLEUTH_TOOLSETS", value_name = "FILE")]
    pub(crate) toolsets: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls: Tls,
    /// End when this process ends. Set by `sleuth serve` for its own executor.
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) parent: Option<u32>,
}

/// How clusters are linked to agents.
#[derive(Debug, Args)]
pub(crate) struct Links {
    /// Address at which other agents that share the store reach this one's gRPC port, so that each reaches the clusters
    /// of all. They do not unless it is given.
    #[arg(long, env = "SLEUTH_ADVERTISE", value_name = "URL")]
    pub(crate) advertise: Option<String>,
    /// Seconds after which an executor that has dialled in is to come again, at the latest. [default: 1800]
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

/// How to reach a server.
#[derive(Debug, Args)]
pub(crate) struct Client {
    /// gRPC address of an agent. Without it, sleuth starts what it needs by itself.
    #[arg(long, env = "SLEUTH_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten, next_help_heading = "Options where no server is named")]
    pub(crate) answering: Answering,
}

/// A server that is asked about itself.
#[derive(Debug, Args)]
pub(crate) struct Server {
    /// gRPC address of an agent. [default: http://127.0.0.1:50051]
    #[arg(long, env = "SLEUTH_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sleuth ask`.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The question.
    pub(crate) question: String,
    /// Name of the model that answers; `sleuth models` lists them.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The only cluster to look at; `sleuth clusters` lists them. Without it, the model chooses among all of them.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) cluster: String,
    /// Text file that belongs to the question, such as a log. Can be given several times.
    #[arg(long = "file", short, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Answer faster: without a written plan.
    #[arg(long)]
    pub(crate) fast_mode: bool,
    /// How the model works: with tools, or by code over an input that may be far longer than it can read.
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub(crate) mode: Mode,
    /// The input of `--mode rlm`: a text file, or `-` for standard input.
    #[arg(long, value_name = "FILE", requires_if("rlm", "mode"))]
    pub(crate) context: Option<PathBuf>,
    /// With `--mode rlm`: how many agents may stand one below the other.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_depth: Option<u32>,
    /// With `--mode rlm`: how often an agent may run code.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) client: Client,
}

/// How a model works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// With tools.
    #[default]
    Agent,
    /// By code.
    Rlm,
}

/// `sleuth runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// gRPC address of an agent. [default: http://127.0.0.1:50051]
    #[arg(long, global = true, env = "SLEUTH_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
}

/// What to do with runs. Without it they are listed.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List,
    /// Show one run.
    Show {
        /// Its id.
        id: String,
    },
    /// Cancel a run at once.
    Cancel {
        /// Its id.
        id: String,
    },
}

/// Where accounts are: in a store, or at the server that uses it.
#[derive(Debug, Args)]
pub(crate) struct Administer {
    /// gRPC address of an agent. Without it, the store is opened; one that a server here has open is reached through
    /// http://127.0.0.1:50051.
    #[arg(long, global = true, env = "SLEUTH_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The store, as `sleuth serve` takes it. [default: sqlite: in the data directory]
    #[arg(long, global = true, env = "SLEUTH_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// The data directory, as `sleuth serve` takes it.
    #[arg(long, global = true, env = "SLEUTH_DATA_DIR", value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// `sleuth accounts`.
#[derive(Debug, Args)]
pub(crate) struct Accounts {
    #[command(flatten)]
    pub(crate) at: Administer,
    #[command(subcommand)]
    pub(crate) command: Option<AccountsCommand>,
}

/// What to do with accounts. Without it they are listed.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountsCommand {
    /// List accounts.
    List,
    /// Create an account.
    Create {
        /// Its id, which clients have in their URLs: letters, digits, `.`, `_` and `-`.
        id: String,
        /// What people call it.
        #[arg(long, default_value = "")]
        name: String,
        /// The model that answers its questions that name none.
        #[arg(long, default_value = "", value_name = "NAME")]
        default_model: String,
    },
    /// Give an account another name or default model.
    Update {
        /// Its id.
        id: String,
        /// What people call it.
        #[arg(long)]
        name: Option<String>,
        /// The model that answers its questions that name none; empty for the server's default.
        #[arg(long, value_name = "NAME")]
        default_model: Option<String>,
    },
    /// Switch an account off: none of its keys counts.
    Disable {
        /// Its id.
        id: String,
    },
    /// Switch an account on again.
    Enable {
        /// Its id.
        id: String,
    },
}

/// `sleuth keys`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(flatten)]
    pub(crate) at: Administer,
    /// The account.
    #[arg(long, global = true, default_value = "default", value_name = "ID")]
    pub(crate) account: String,
    #[command(subcommand)]
    pub(crate) command: Option<KeysCommand>,
}

/// What to do with keys. Without it they are listed.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// List the keys of the account.
    List,
    /// Create a key, and print its text: the only time that it is seen.
    Create {
        /// What people call it.
        #[arg(long, default_value = "")]
        name: String,
        /// What it may be used for: robusta_ai:write (ask; if none is given), robusta_ai:read, audit:read,
        /// metrics:read or admin:write. Can be given several times.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// The only cluster that can be reached with it. Can be given several times.
        #[arg(long = "cluster", value_name = "NAME")]
        clusters: Vec<String>,
        /// Days after which it ends. Never unless given.
        #[arg(long, value_name = "DAYS")]
        expires_days: Option<u32>,
        /// Make a token with which the one cluster can join: it counts once, for an hour.
        #[arg(long, conflicts_with_all = ["scopes", "expires_days"])]
        join: bool,
    },
    /// End a key at once.
    Revoke {
        /// Its id.
        id: String,
    },
    /// Create a key that takes the place of another one, and print its text.
    Rotate {
        /// The old key's id.
        id: String,
        /// Hours for which the old one still counts.
        #[arg(long, default_value_t = 24, value_name = "HOURS")]
        overlap_hours: u16,
    },
}

/// `sleuth audit`.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) at: Administer,
    /// The account.
    #[arg(long, default_value = "default", value_name = "ID")]
    pub(crate) account: String,
    /// Runs to show, newest first.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) runs: u32,
    /// Show only this run.
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Show only what was asked for with this key, by its id.
    #[arg(long, default_value = "", value_name = "ID")]
    pub(crate) by: String,
    /// Show only what happened at this cluster.
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) cluster: String,
    /// Show only these: asked, began, waits, allowed, ended or closed. Can be given several times.
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Show only what happened then or later, such as 2030-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Show only what happened before.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

/// A label as an operator writes it.
fn label(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    pair.filter(|(key, _)| !key.is_empty()).ok_or("labels are pairs KEY=VALUE")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
