//! Names, units and labels of the agent's metrics.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use domain::{Outcome, ToolStatus, Usage};

use crate::runs::Progress;

/// Runs that go on now.
const RUNS_ACTIVE: &str = "sleuth_runs_active";
/// Runs that have ended, by `outcome`.
const RUNS: &str = "sleuth_runs_total";
/// Time from start to end of a run.
const RUN_SECONDS: &str = "sleuth_run_duration_seconds";
/// Model calls, by `model`.
const MODEL_CALLS: &str = "sleuth_model_calls_total";
/// Tokens, by `model` and `kind` (`prompt`, `completion`).
const TOKENS: &str = "sleuth_tokens_total";
/// Price of model calls in US dollars, by `model`.
const COST: &str = "sleuth_cost_usd";
/// Tool calls that have ended, by `tool` and `status`.
const TOOL_CALLS: &str = "sleuth_tool_calls_total";
/// Time that a tool took, by `tool`.
const TOOL_SECONDS: &str = "sleuth_tool_duration_seconds";
/// Runs that have ended, by `account` and `outcome`. Accounts have series of their own, so that their number is not
/// multiplied by those of models and tools.
const ACCOUNT_RUNS: &str = "sleuth_account_runs_total";
/// Tokens of these runs, by `account` and `kind`.
const ACCOUNT_TOKENS: &str = "sleuth_account_tokens_total";
/// Their tool calls, by `account`.
const ACCOUNT_TOOL_CALLS: &str = "sleuth_account_tool_calls_total";
/// Their price in US dollars, by `account`.
const ACCOUNT_COST: &str = "sleuth_account_cost_usd";

/// Accounts that have series of their own; callers who are trusted could name accounts without end.
const MOST_ACCOUNTS: usize = 1000;
/// All others. No account can have this name.
const OTHERS: &str = "(others)";

pub(crate) fn run_started() {
    metrics::gauge!(RUNS_ACTIVE).increment(1.0);
}

pub(crate) fn run_ended(run: &Progress, elapsed: Duration) {
    let state = run.state();
    metrics::gauge!(RUNS_ACTIVE).decrement(1.0);
    let outcome = match state.outcome {
        Some(Outcome::Finished) => "finished",
        Some(Outcome::Cancelled) => "cancelled",
        Some(Outcome::Suspended) => "suspended",
        Some(Outcome::Failed) => "failed",
        // A run that another agent takes over ends there.
        None => return,
    };
    metrics::counter!(RUNS, "outcome" => outcome).increment(1);
    metrics::histogram!(RUN_SECONDS).record(elapsed);
    let account = label(&run.account);
    let tokens = |kind| metrics::counter!(ACCOUNT_TOKENS, "account" => account.clone(), "kind" => kind);
    metrics::counter!(ACCOUNT_RUNS, "account" => account.clone(), "outcome" => outcome).increment(1);
    tokens("prompt").increment(state.totals.prompt);
    tokens("completion").increment(state.totals.completion);
    metrics::counter!(ACCOUNT_TOOL_CALLS, "account" => account.clone()).increment(state.tool_calls.into());
    metrics::gauge!(ACCOUNT_COST, "account" => account).increment(state.totals.cost_usd);
}

/// What an account is called in metrics.
fn label(account: &str) -> String {
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    // Nothing in here panics half-way through a change.
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !seen.contains(account) {
        if seen.len() >= MOST_ACCOUNTS {
            return OTHERS.to_owned();
        }
        seen.insert(account.to_owned());
    }
    account.to_owned()
}

pub(crate) fn model_replied(model: &str, usage: Usage) {
    metrics::counter!(MODEL_CALLS, "model" => model.to_owned()).increment(1);
    metrics::counter!(TOKENS, "model" => model.to_owned(), "kind" => "prompt").increment(usage.prompt);
    metrics::counter!(TOKENS, "model" => model.to_owned(), "kind" => "completion")
        .increment(usage.completion);
    metrics::gauge!(COST, "model" => model.to_owned()).increment(usage.cost_usd);
}

/// `tool` must be one of the offered tools: a model could invent names without end.
pub(crate) fn tool_finished(tool: &str, status: ToolStatus, elapsed: Duration) {
    let status = match status {
        ToolStatus::Success => "success",
        ToolStatus::Error => "error",
        ToolStatus::NoData => "no_data",
    };
    metrics::counter!(TOOL_CALLS, "tool" => tool.to_owned(), "status" => status).increment(1);
    metrics::histogram!(TOOL_SECONDS, "tool" => tool.to_owned()).record(elapsed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_accounts_in_metrics() {
        for number in 0..MOST_ACCOUNTS {
            label(&number.to_string());
        }
        assert_eq!(label("one-more"), OTHERS);
        assert_eq!(label("0"), "0");
    }
}
