//! Tokens, cost and ceilings.

use std::time::Duration;

use domain::{ContextSize, Limits, Totals, Usage};

use crate::agent as wire;

impl From<Usage> for wire::Usage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            cached_tokens: usage.cached,
            cache_creation_tokens: usage.cache_creation,
            reasoning_tokens: usage.reasoning,
            cost_usd: usage.cost_usd,
        }
    }
}

impl From<wire::Usage> for Usage {
    fn from(usage: wire::Usage) -> Self {
        Self {
            prompt: usage.prompt_tokens,
            completion: usage.completion_tokens,
            cached: usage.cached_tokens,
            cache_creation: usage.cache_creation_tokens,
            reasoning: usage.reasoning_tokens,
            cost_usd: usage.cost_usd,
        }
    }
}

impl From<Totals> for wire::Totals {
    fn from(totals: Totals) -> Self {
        Self {
            model_calls: totals.model_calls,
            prompt_tokens: totals.prompt,
            completion_tokens: totals.completion,
            cached_tokens: totals.cached,
            cache_creation_tokens: totals.cache_creation,
            reasoning_tokens: totals.reasoning,
            cost_usd: totals.cost_usd,
            max_prompt_tokens: totals.max_prompt,
            max_completion_tokens: totals.max_completion,
            compactions: totals.compactions,
        }
    }
}

impl From<wire::Totals> for Totals {
    fn from(totals: wire::Totals) -> Self {
        Self {
            model_calls: totals.model_calls,
            prompt: totals.prompt_tokens,
            completion: totals.completion_tokens,
            cached: totals.cached_tokens,
            cache_creation: totals.cache_creation_tokens,
            reasoning: totals.reasoning_tokens,
            cost_usd: totals.cost_usd,
            max_prompt: totals.max_prompt_tokens,
            max_completion: totals.max_completion_tokens,
            compactions: totals.compactions,
        }
    }
}

impl From<ContextSize> for wire::ContextSize {
    fn from(size: ContextSize) -> Self {
        Self {
            total: size.total(),
            system: size.system,
            user: size.user,
            assistant: size.assistant,
            tools: size.tools,
            tool_schemas: size.tool_schemas,
            other: 0,
        }
    }
}

impl From<wire::ContextSize> for ContextSize {
    fn from(size: wire::ContextSize) -> Self {
        Self {
            system: size.system,
            user: size.user,
            assistant: size.assistant,
            tools: size.tools,
            tool_schemas: size.tool_schemas,
        }
    }
}

impl wire::Limits {
    /// The ceilings of a request, where zero leaves `most` as it is.
    pub fn within(self, most: Limits) -> Limits {
        let or = |asked: u32, most: u32| if asked == 0 { most } else { asked };
        most.lowered_to(Limits {
            steps: or(self.steps, most.steps),
            tool_calls: or(self.tool_calls, most.tool_calls),
            parallel_tools: or(self.parallel_tools, most.parallel_tools),
            tokens: (self.tokens > 0).then_some(self.tokens),
            cost_usd: (self.cost_usd > 0.0).then_some(self.cost_usd),
            wall_time: match self.wall_time_ms {
                0 => most.wall_time,
                asked => Duration::from_millis(asked),
            },
            answer_time: most.answer_time,
            decision_time: match self.decision_time_ms {
                0 => most.decision_time,
                asked => Duration::from_millis(asked),
            },
            compaction_percent: most.compaction_percent,
        })
    }
}
