//! Context windows, output limits and prices of known models, from a dated data file.

use std::collections::BTreeMap;

use domain::Usage;
use serde::Deserialize;

/// Tokens that fit into a model that nothing is known of.
const UNKNOWN_WINDOW: u64 = 200_000;
/// Tokens reserved for a reply, where the window allows it.
const USUAL_OUTPUT: u64 = 64_000;

/// The data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    #[serde(rename = "as_of")]
    _as_of: String,
    models: BTreeMap<String, Known>,
}

/// What is known of a model.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    window: u64,
    max_output: u64,
    #[serde(default)]
    input: f64,
    #[serde(default)]
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    /// Whether it sees images, if that is known.
    pub(crate) sees_images: Option<bool>,
}

/// What tokens cost, in US dollars each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Prices {
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cache_read: f64,
    pub(crate) cache_write: f64,
}

impl Table {
    pub(crate) fn load() -> Result<Self, serde_saphyr::Error> {
        serde_saphyr::from_str(include_str!("../data/models.yaml"))
    }

    /// What is known of a provider's id, which may be in a folder: `anthropic/claude-…`.
    pub(crate) fn find(&self, id: &str) -> Option<Known> {
        let plain = |id: &str| id.to_ascii_lowercase().replace('.', "-");
        let id = plain(id.rsplit('/').next().unwrap_or(id));
        let matching = self.models.iter().filter(|(name, _)| id.starts_with(&plain(name)));
        matching.max_by_key(|(name, _)| name.len()).map(|(_, known)| *known)
    }
}

impl Known {
    pub(crate) fn prices(self) -> Prices {
        let per_token = |price: f64| price / 1_000_000.0;
        Prices {
            input: per_token(self.input),
            output: per_token(self.output),
            cache_read: per_token(self.cache_read.unwrap_or(self.input)),
            cache_write: per_token(self.cache_write.unwrap_or(self.input)),
        }
    }
}

impl Prices {
    /// What a call costs.
    pub(crate) fn cost(self, usage: &Usage) -> f64 {
        let read = usage.cached.unwrap_or_default();
        let written = usage.cache_creation.unwrap_or_default();
        let fresh = usage.prompt.saturating_sub(read.saturating_add(written));
        let cost = |tokens: u64, price: f64| tokens as f64 * price;
        cost(fresh, self.input)
            + cost(read, self.cache_read)
            + cost(written, self.cache_write)
            + cost(usage.completion, self.output)
    }
}

/// The context window: what is configured, else what is known, else 200,000 tokens.
pub(crate) fn window(configured: Option<u64>, known: Option<Known>) -> u64 {
    configured.or(known.map(|known| known.window)).unwrap_or(UNKNOWN_WINDOW)
}

/// The output limit: what is configured, else 64,000 tokens or 12 % of the window, whichever is more, but not more
/// than the model is known to write or half of the window.
pub(crate) fn max_output(configured: Option<u64>, known: Option<Known>, window: u64) -> u64 {
    let usual = USUAL_OUTPUT.max(window / 100 * 12).min(window / 2);
    configured.unwrap_or_else(|| known.map_or(usual, |known| usual.min(known.max_output))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins() {
        let table = Table::load().unwrap();
        let window = |id: &str| table.find(id).map(|known| (known.window, known.max_output));
        assert_eq!(window("gpt-4.1-2025-04-14"), Some((1_047_576, 32_768)));
        assert_eq!(window("gpt-5.4-mini-2026-03-17"), Some((400_000, 128_000)));
        assert_eq!(window("anthropic/claude-Opus-4.5"), Some((200_000, 64_000)));
        assert_eq!(window("llama-4"), None);
    }

    #[test]
    fn limits_fit_the_window() {
        let table = Table::load().unwrap();
        assert_eq!(max_output(None, table.find("gpt-4.1"), 1_047_576), 32_768);
        assert_eq!(max_output(None, None, window(None, None)), 64_000);
        assert_eq!(max_output(None, None, 1_000_000), 120_000);
        assert_eq!(max_output(None, None, 8192), 4096);
        assert_eq!(max_output(Some(5), None, 8192), 5);
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let prices = Prices { input: 3.0, output: 10.0, cache_read: 1.0, cache_write: 4.0 };
        let usage =
            Usage { prompt: 10, completion: 2, cached: Some(5), cache_creation: Some(1), ..Usage::default() };
        assert!((prices.cost(&usage) - (4.0 * 3.0 + 5.0 + 4.0 + 20.0)).abs() < 1e-9);
    }
}
