//! `transformers` of a toolset file: what is to become of long results.

use std::sync::Arc;

use serde_json::Value;

use super::{
    file::{LlmSummarize, Transformer},
    read, warn_of_unknown,
};

/// Long results are to be summarised, by a model that the caller has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Summarize {
    /// Characters that a result may have as it is.
    pub(crate) threshold: u64,
    /// What the summary is for. Empty: the caller knows.
    pub(crate) prompt: String,
    /// Who writes it. Empty: the caller knows.
    pub(crate) model: String,
}

/// What a list of transformers says of long results. Of two, the first counts.
pub(super) fn summarize(place: &str, listed: &[Transformer]) -> Result<Option<Arc<Summarize>>, String> {
    let mut found = None;
    for Transformer { name, config } in listed {
        if name != "llm_summarize" {
            tracing::warn!(place, name, "a transformer that is not known is ignored");
            continue;
        }
        let config = if config.is_null() { Value::Object(serde_json::Map::new()) } else { config.clone() };
        let LlmSummarize { input_threshold, prompt, fast_model, unknown } =
            read(config).map_err(|error| format!("transformer `{name}`: {error}"))?;
        warn_of_unknown(place, unknown.keys());
        found.get_or_insert_with(|| {
            let prompt = prompt.trim().to_owned();
            Arc::new(Summarize { threshold: input_threshold, prompt, model: fast_model })
        });
    }
    Ok(found)
}
