//! Ceilings of a run.

use std::{fmt, time::Duration};

/// What one run may use at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Model calls; the last one must answer.
    pub steps: u32,
    /// Tool calls in total.
    pub tool_calls: u32,
    /// Tool calls that run at the same time.
    pub parallel_tools: u32,
    /// Prompt and completion tokens in total.
    pub tokens: Option<u64>,
    /// Price of all model calls, in US dollars.
    pub cost_usd: Option<f64>,
    /// Time from the start of the run until it must answer.
    pub wall_time: Duration,
    /// Time that the answer may take once `wall_time` is over.
    pub answer_time: Duration,
    /// Time that a call waits for the client in a run that waits.
    pub decision_time: Duration,
    /// Share of the context window above which a conversation is compacted, in percent; `None` for never.
    pub compaction_percent: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 100,
            tool_calls: 1000,
            parallel_tools: 16,
            tokens: None,
            cost_usd: None,
            wall_time: Duration::from_secs(30 * 60),
            answer_time: Duration::from_secs(120),
            decision_time: Duration::from_secs(10 * 60),
            compaction_percent: Some(95),
        }
    }
}

impl Limits {
    /// The lower of each ceiling.
    #[must_use]
    pub fn lowered_to(self, other: Self) -> Self {
        Self {
            steps: self.steps.min(other.steps).max(1),
            tool_calls: self.tool_calls.min(other.tool_calls),
            parallel_tools: self.parallel_tools.min(other.parallel_tools).max(1),
            tokens: lower(self.tokens, other.tokens, u64::min),
            cost_usd: lower(self.cost_usd, other.cost_usd, f64::min),
            wall_time: self.wall_time.min(other.wall_time),
            answer_time: self.answer_time.min(other.answer_time),
            decision_time: self.decision_time.min(other.decision_time),
            compaction_percent: self.compaction_percent,
        }
    }
}

fn lower<T>(left: Option<T>, right: Option<T>, min: fn(T, T) -> T) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(min(left, right)),
        (left, right) => left.or(right),
    }
}

/// The ceiling that a run met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ceiling {
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::tool_calls`].
    ToolCalls,
    /// [`Limits::tokens`].
    Tokens,
    /// [`Limits::cost_usd`].
    Cost,
    /// [`Limits::wall_time`].
    WallTime,
}

impl Ceiling {
    /// A stable name, used as the finish reason of the run.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "step_limit",
            Self::ToolCalls => "tool_call_limit",
            Self::Tokens => "token_limit",
            Self::Cost => "cost_limit",
            Self::WallTime => "time_limit",
        }
    }
}

impl Ceiling {
    /// The ceiling of a name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Steps, Self::ToolCalls, Self::Tokens, Self::Cost, Self::WallTime];
        all.into_iter().find(|ceiling| ceiling.name() == name)
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "the limit of steps",
            Self::ToolCalls => "the limit of tool calls",
            Self::Tokens => "the limit of tokens",
            Self::Cost => "the limit of cost",
            Self::WallTime => "the limit of time",
        })
    }
}
