//! Tokens and cost.

/// Tokens of one model call, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub prompt: u64,
    /// Tokens of the reply, thinking included.
    pub completion: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached: Option<u64>,
    /// Prompt tokens written to the provider's cache.
    pub cache_creation: Option<u64>,
    /// Reply tokens spent on thinking.
    pub reasoning: Option<u64>,
    /// Price in US dollars. Zero where the price is not known.
    pub cost_usd: f64,
}

/// Sums over all model calls of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Model calls that were answered.
    pub model_calls: u32,
    /// Prompt tokens.
    pub prompt: u64,
    /// Completion tokens.
    pub completion: u64,
    /// Cached prompt tokens, where a provider reported them.
    pub cached: Option<u64>,
    /// Prompt tokens written to a cache, where a provider reported them.
    pub cache_creation: Option<u64>,
    /// Thinking tokens, where a provider reported them.
    pub reasoning: Option<u64>,
    /// Price in US dollars.
    pub cost_usd: f64,
    /// The largest prompt of one call.
    pub max_prompt: u64,
    /// The largest completion of one call.
    pub max_completion: u64,
    /// How often the conversation was compacted.
    pub compactions: u32,
}

impl Totals {
    /// These totals and one more call.
    #[must_use]
    pub fn plus(self, usage: Usage) -> Self {
        Self {
            model_calls: self.model_calls.saturating_add(1),
            prompt: self.prompt.saturating_add(usage.prompt),
            completion: self.completion.saturating_add(usage.completion),
            cached: sum(self.cached, usage.cached),
            cache_creation: sum(self.cache_creation, usage.cache_creation),
            reasoning: sum(self.reasoning, usage.reasoning),
            cost_usd: self.cost_usd + usage.cost_usd,
            max_prompt: self.max_prompt.max(usage.prompt),
            max_completion: self.max_completion.max(usage.completion),
            compactions: self.compactions,
        }
    }

    /// These totals and those of another agent.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            model_calls: self.model_calls.saturating_add(other.model_calls),
            prompt: self.prompt.saturating_add(other.prompt),
            completion: self.completion.saturating_add(other.completion),
            cached: sum(self.cached, other.cached),
            cache_creation: sum(self.cache_creation, other.cache_creation),
            reasoning: sum(self.reasoning, other.reasoning),
            cost_usd: self.cost_usd + other.cost_usd,
            max_prompt: self.max_prompt.max(other.max_prompt),
            max_completion: self.max_completion.max(other.max_completion),
            compactions: self.compactions.saturating_add(other.compactions),
        }
    }

    /// Prompt and completion tokens.
    pub fn tokens(self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (None, None) => None,
        (left, right) => Some(left.unwrap_or(0).saturating_add(right.unwrap_or(0))),
    }
}

/// Estimated size of the conversation, by who speaks, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSize {
    /// System messages, the agent's own prompt included.
    pub system: u64,
    /// User messages.
    pub user: u64,
    /// Assistant messages.
    pub assistant: u64,
    /// Results of tools.
    pub tools: u64,
    /// Descriptions and schemas of the tools on offer.
    pub tool_schemas: u64,
}

impl ContextSize {
    /// Everything.
    pub fn total(self) -> u64 {
        self.system + self.user + self.assistant + self.tools + self.tool_schemas
    }
}
