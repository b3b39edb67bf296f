//! Flags of accounts, keys and the audit trail.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
        #[command(flatten)]
        budget: Budget,
    },
    /// Give an account another name, default model or budget.
    Update {
        /// Its id.
        id: String,
        /// What people call it.
        #[arg(long)]
        name: Option<String>,
        /// The model that answers its questions that name none; empty for the server's default.
        #[arg(long, value_name = "NAME")]
        default_model: Option<String>,
        #[command(flatten)]
        budget: Budget,
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

/// What an account may spend.
#[derive(Debug, Args)]
pub(crate) struct Budget {
    /// Tokens that its runs may use in a day (UTC); then it is not answered until the next. 0 for no ceiling of its own.
    #[arg(long, value_name = "N")]
    pub(crate) daily_tokens: Option<u64>,
    /// US dollars that they may cost in a day. 0 for no ceiling of its own.
    #[arg(long, value_name = "USD")]
    pub(crate) daily_cost: Option<f64>,
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
    /// Runs to show that have something of it, newest first: 1000 at most.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) runs: u32,
    /// Show only this run, or those of this session.
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Show only runs that began before this one.
    #[arg(long, default_value = "", value_name = "ID")]
    pub(crate) before: String,
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
