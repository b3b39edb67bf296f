//! Flags of the services.

use std::path::PathBuf;

use clap::Args;

use super::options::{Access, Answering, Data, Grpc, Http, Links, Rates, Storage, Tls};

/// `sleuth serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) http: Http,
    #[command(flatten)]
    pub(crate) grpc: Grpc,
    /// The executors that run its tools for every account, separated by commas, or `none` for those of clusters only.
    /// [default: one that it starts itself]
    #[arg(long, env = "SLEUTH_EXECUTOR", value_name = "URL")]
    pub(crate) executor: Option<String>,
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
    /// The agent behind it, or several, separated by commas: the first one that answers.
    /// [default: http://127.0.0.1:50051]
    #[arg(long, env = "SLEUTH_AGENT", value_name = "URLS")]
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
    #[command(flatten)]
    pub(crate) grpc: Grpc,
    /// The executors that run its tools, separated by commas, or `none` for those of clusters only. All addresses of a
    /// name count, and are looked up again. [default: http://127.0.0.1:50052]
    #[arg(long, env = "SLEUTH_EXECUTOR", value_name = "URL")]
    pub(crate) executor: Option<String>,
    /// Give work only to those of them that have these labels (SLEUTH_EXECUTOR_LABELS of the executor). The label
    /// `toolset` is that of all toolsets of an executor that work.
    #[arg(long, env = "SLEUTH_EXECUTOR_SELECTOR", value_name = "KEY=VALUE", value_delimiter = ',')]
    #[arg(value_parser = label)]
    pub(crate) executor_selector: Option<Vec<(String, String)>>,
    /// Where to serve /metrics and /healthz over HTTP. Not served unless given. With SLEUTH_API_KEY, /metrics asks for it
    /// or for a key with the scope metrics:read.
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
    /// Token with which the cluster joins, once; `sleuth keys create --join` makes it. It is used where no key is kept, or
    /// the one that is does not count any more. The variable is safer: flags are seen by others.
    #[arg(long, env = "SLEUTH_JOIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(crate) join_token: Option<secrecy::SecretString>,
    /// Name of this executor, unique in its cluster. [default: the host's name]
    #[arg(long, env = "SLEUTH_EXECUTOR_NAME", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where to serve /metrics and /healthz over HTTP. Not served unless given. With SLEUTH_API_KEY, /metrics asks for it.
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

/// A label as an operator writes it.
fn label(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    pair.filter(|(key, _)| !key.is_empty()).ok_or("labels are pairs KEY=VALUE")
}
