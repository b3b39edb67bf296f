//! The events that tell of a conversation that was too long.

use domain::{CompactionDone, CompactionStarted};
use serde::Serialize;

use super::{events::Sizes, history::Outgoing};

/// A summary is being written.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CompactionStart {
    content: String,
    metadata: Before,
}

#[derive(Clone, Debug, Serialize)]
struct Before {
    initial_tokens: u64,
    num_messages: usize,
    max_context_size: u64,
    threshold_pct: u64,
}

/// The summary stands for the conversation.
#[derive(Debug, Serialize)]
pub(crate) struct Compacted {
    content: String,
    compaction_summary: String,
    messages: Vec<Outgoing>,
    metadata: Gained,
}

#[derive(Debug, Serialize)]
struct Gained {
    initial_tokens: u64,
    compacted_tokens: u64,
    compression_ratio_pct: f64,
    num_messages_before: usize,
    num_messages_after: usize,
    max_context_size: u64,
    threshold_pct: u64,
    compaction_cost: Cost,
}

#[derive(Debug, Serialize)]
struct Cost {
    total_cost: f64,
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    cached_tokens: Option<u64>,
    cache_creation_tokens: Option<u64>,
}

impl CompactionStart {
    /// `messages` is how many the client would get now.
    pub(super) fn new(started: &CompactionStarted, messages: usize, sizes: Sizes) -> Self {
        Self {
            content: format!(
                "Compacting conversation history ({} tokens, {messages} messages)...",
                started.tokens
            ),
            metadata: Before {
                initial_tokens: started.tokens,
                num_messages: messages,
                max_context_size: sizes.window,
                threshold_pct: started.threshold_percent,
            },
        }
    }
}

impl Compacted {
    pub(super) fn new(start: &CompactionStart, done: CompactionDone, messages: Vec<Outgoing>) -> Self {
        let (before, after) = (done.tokens_before, done.tokens_after);
        Self {
            content: format!("The conversation history has been compacted from {before} to {after} tokens"),
            metadata: Gained {
                initial_tokens: before,
                compacted_tokens: after,
                compression_ratio_pct: saved_percent(before, after),
                num_messages_before: start.metadata.num_messages,
                num_messages_after: messages.len(),
                max_context_size: start.metadata.max_context_size,
                threshold_pct: start.metadata.threshold_pct,
                compaction_cost: Cost {
                    total_cost: done.usage.cost_usd,
                    prompt_tokens: done.usage.prompt,
                    completion_tokens: done.usage.completion,
                    total_tokens: done.usage.prompt.saturating_add(done.usage.completion),
                    cached_tokens: done.usage.cached,
                    cache_creation_tokens: done.usage.cache_creation,
                },
            },
            compaction_summary: done.summary,
            messages,
        }
    }
}

/// How much smaller it is, with one decimal.
fn saved_percent(before: u64, after: u64) -> f64 {
    if before == 0 {
        return 0.0;
    }
    ((1.0 - after as f64 / before as f64) * 1000.0).round() / 10.0
}
