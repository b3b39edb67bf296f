//! How much a model is to think, as the API wants to be told.

use domain::Effort;
use serde_json::{Map, Value, json};

/// The fewest tokens that the API takes for thinking.
const LEAST: u64 = 1024;
/// What the API refuses beside thinking.
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

/// Tells a model how much to think: in words where the operator lets it think as it likes, else in tokens.
pub(super) fn set(effort: Effort, body: &mut Map<String, Value>) {
    let adapts = body.get("thinking").is_some_and(|thinking| thinking["type"] == "adaptive");
    match (effort, adapts) {
        (Effort::None, _) => drop(body.insert("thinking".into(), json!({"type": "disabled"}))),
        (effort, true) => match body.entry("output_config").or_insert_with(|| json!({})) {
            Value::Object(config) => drop(config.insert("effort".into(), json!(word(effort)))),
            other => *other = json!({"effort": word(effort)}),
        },
        (effort, false) => set_budget(tokens(effort), body),
    }
}

/// What is thought counts as output: half of that is left for what is said.
fn set_budget(wanted: u64, body: &mut Map<String, Value>) {
    let budget = wanted.min(body.get("max_tokens").and_then(Value::as_u64).unwrap_or_default() / 2);
    if budget >= LEAST {
        body.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget}));
        SAMPLING.iter().for_each(|name| drop(body.remove(*name)));
    }
}

fn tokens(effort: Effort) -> u64 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => LEAST,
        Effort::Low => 4096,
        Effort::Medium => 10_000,
        Effort::High => 24_000,
        Effort::Highest => 48_000,
    }
}

fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Highest => "max",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(effort: Effort, body: Value) -> Value {
        let Value::Object(mut body) = body else { unreachable!() };
        set(effort, &mut body);
        body.into()
    }

    #[test]
    fn thinking_has_a_budget_within_the_reply() {
        let asked = || json!({"max_tokens": 32_000, "temperature": 0});
        let thinks = |budget: u64| json!({"max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": budget}});
        assert_eq!(told(Effort::Low, asked()), thinks(4096));
        assert_eq!(told(Effort::Highest, asked()), thinks(16_000));
        let none = json!({"max_tokens": 32_000, "temperature": 0, "thinking": {"type": "disabled"}});
        assert_eq!(told(Effort::None, asked()), none);
        let short = json!({"max_tokens": 1500, "temperature": 0});
        assert_eq!(told(Effort::High, short.clone()), short, "there is no room to think");
    }

    #[test]
    fn a_model_that_thinks_as_it_likes_is_told_in_words() {
        let adapts =
            json!({"max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"format": 1}});
        let told = told(Effort::Highest, adapts);
        assert_eq!(told["output_config"], json!({"format": 1, "effort": "max"}));
        assert_eq!(told["thinking"], json!({"type": "adaptive"}));
    }
}
