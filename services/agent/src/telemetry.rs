//! Names, units and labels of the agent's metrics.

use std::time::Duration;

use domain::{Outcome, ToolStatus, Usage};

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

pub(crate) fn run_started() {
    metrics::gauge!(RUNS_ACTIVE).increment(1.0);
}

pub(crate) fn run_ended(outcome: Option<Outcome>, elapsed: Duration) {
    let outcome = match outcome {
        Some(Outcome::Finished) => "finished",
        Some(Outcome::Cancelled) => "cancelled",
        Some(Outcome::Suspended) => "suspended",
        Some(Outcome::Failed) | None => "failed",
    };
    metrics::gauge!(RUNS_ACTIVE).decrement(1.0);
    metrics::counter!(RUNS, "outcome" => outcome).increment(1);
    metrics::histogram!(RUN_SECONDS).record(elapsed);
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
