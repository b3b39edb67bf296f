//! What can be asked of sleuth on a command line. The help texts are the manual.
//!
//! # Layout
//! * `serving`: the services
//! * `options`: what several of them share
//! * `asking`: questions, and what is said of servers and runs
//! * `administering`: accounts, keys, the audit trail

mod administering;
mod asking;
mod options;
mod serving;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use administering::{Accounts, AccountsCommand, Administer, Audit, Budget, Keys, KeysCommand};
pub(crate) use asking::{Ask, Client, Mode, Runs, RunsCommand, Server};
pub(crate) use options::{Access, Answering, Data, Grpc, Http, Links, Rates, Storage, Tls};
pub(crate) use serving::{Agent, Executor, Gateway, Serve};

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
