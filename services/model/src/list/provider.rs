//! The providers that a model list can name.

use crate::{anthropic::Anthropic, api::Api, openai::OpenAi};

/// A provider: the word before the first `/` of a model.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: &'static str,
    pub(super) family: Family,
    /// Its address; the list must give one where there is none.
    pub(super) base: Option<&'static str>,
    /// The variable that holds its key; at its own address it cannot do without one.
    pub(super) key: Option<&'static str>,
}

/// The API that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    OpenAi,
    Anthropic,
}

impl Family {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

const fn compatible(name: &'static str, base: &'static str, key: &'static str) -> Provider {
    Provider { name, family: Family::OpenAi, base: Some(base), key: Some(key) }
}

static PROVIDERS: [Provider; 10] = [
    compatible("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Provider {
        name: "anthropic",
        family: Family::Anthropic,
        base: Some("https://api.anthropic.com"),
        key: Some("ANTHROPIC_API_KEY"),
    },
    compatible("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    compatible("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    compatible("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    compatible("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    compatible("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    compatible("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    Provider { name: "ollama", family: Family::OpenAi, base: Some("http://localhost:11434/v1"), key: None },
    Provider { name: "hosted_vllm", family: Family::OpenAi, base: None, key: None },
];

/// The provider and the provider's own id of a model such as `openai/gpt-4.1`. Ids of OpenAI and Anthropic can do
/// without the provider.
pub(super) fn find(model: &str) -> Option<(&'static Provider, &str)> {
    let named = |name: &str| PROVIDERS.iter().find(|provider| provider.name == name);
    match model.split_once('/') {
        Some((name, id)) => Some((named(name)?, id)),
        None => {
            let of = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
            let name = match () {
                () if of(&["claude-"]) => "anthropic",
                () if of(&["gpt-", "chatgpt-", "o1", "o3", "o4"]) => "openai",
                () => return None,
            };
            Some((named(name)?, model))
        }
    }
}

/// All names, for an error.
pub(super) fn known() -> String {
    PROVIDERS.each_ref().map(|provider| format!("{}/", provider.name)).join(", ")
}

impl Provider {
    /// How to speak to it, at its own address or another.
    pub(super) fn api(&self, at_home: bool) -> Box<dyn Api> {
        match self.family {
            Family::Anthropic => Box::new(Anthropic),
            Family::OpenAi if self.name == "openai" && at_home => {
                Box::new(OpenAi { output_limit: "max_completion_tokens" })
            }
            Family::OpenAi => Box::new(OpenAi { output_limit: "max_tokens" }),
        }
    }
}
