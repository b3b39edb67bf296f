//! What an operator may decide about the agent.

use std::time::Duration;

use domain::{Labels, Limits, Subagents};
use runtime::place::Place;
use store::Budget;

use crate::{prompt::EnabledPrompts, runbooks::Runbooks, sessions::Disclosure};

/// Settings of the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Ceilings of every run.
    pub limits: Limits,
    /// Runs that may go on at the same time; one more is refused.
    pub max_runs: usize,
    /// Runs of one account that may go on at the same time; one more is refused.
    pub max_account_runs: usize,
    /// Runs that were asked for with one key and may go on at the same time; one more is refused.
    pub max_key_runs: usize,
    /// What an account may spend in a day that has no budget of its own.
    pub default_budget: Budget,
    /// Whether a model may be asked which cluster a text is about.
    pub name_clusters: bool,
    /// How long a run goes on after its last reader has left.
    pub disconnect_grace: Duration,
    /// Whether the log outlives this process, so that another can go on with its runs.
    pub hands_over: bool,
    /// How long runs may go on after the agent was asked to end.
    pub drain_time: Duration,
    /// Name of the cluster that the agent's own executors see: for the prompt, and for questions that name it.
    pub cluster_name: Option<String>,
    /// What its own executors must be called to be given work.
    pub executor_labels: Labels,
    /// Where other agents that share the store reach this one; they do not if it is not said.
    pub address: Option<Place>,
    /// How long an executor of a cluster stays linked before it is to come again.
    pub link_age: Duration,
    /// The only prompt sections that may be on; `None` leaves it to the defaults and the requests.
    pub enabled_prompts: Option<EnabledPrompts>,
    /// What models may read of known problems.
    pub runbooks: Runbooks,
    /// Name of the model that summarises results of tools, where the tool names none.
    pub fast_model: Option<String>,
    /// Share of a model's context window that one tool result may take, in percent.
    pub tool_result_percent: u64,
    /// Tokens that one tool result may have.
    pub tool_result_tokens: u64,
    /// Bytes that one request may have.
    pub max_request_bytes: usize,
    /// How long a session waits for the results of its client's tools.
    pub client_tool_time: Duration,
    /// How much clients of sessions are told of an error at most.
    pub error_disclosure: Disclosure,
    /// What subagents runs may have whose requests do not speak of them.
    pub subagents: Subagents,
}

impl Config {
    /// How the cluster of the agent's own executors is called.
    pub(crate) fn own_cluster(&self) -> &str {
        self.cluster_name.as_deref().unwrap_or("local")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            max_runs: 1000,
            max_account_runs: usize::MAX,
            max_key_runs: usize::MAX,
            default_budget: Budget::default(),
            name_clusters: true,
            disconnect_grace: Duration::ZERO,
            hands_over: false,
            drain_time: Duration::from_secs(20),
            cluster_name: None,
            executor_labels: Labels::new(),
            address: None,
            link_age: Duration::from_secs(30 * 60),
            enabled_prompts: None,
            runbooks: Runbooks::default(),
            fast_model: None,
            tool_result_percent: 15,
            tool_result_tokens: 25_000,
            max_request_bytes: 64 << 20,
            client_tool_time: Duration::from_secs(300),
            error_disclosure: Disclosure::default(),
            subagents: Subagents { depth: 1, number: 4 },
        }
    }
}
