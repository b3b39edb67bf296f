//! Flags of questions, and of what is said of servers and runs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::options::Answering;

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
    /// With `--mode rlm`: how many agents may stand below the first, one below the other. [default: 2]
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
