//! What a model is told that works by code.

/// Characters of the input that it sees.
const PREFIX: usize = 200;

/// What is known of an input without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub characters: u64,
    pub prefix: String,
}

impl About {
    pub(crate) fn of(input: &str) -> Self {
        Self { characters: input.chars().count() as u64, prefix: input.chars().take(PREFIX).collect() }
    }
}

/// The system prompt.
pub(crate) fn system(addition: &str) -> String {
    let own = include_str!("../../prompts/rlm.md").trim();
    if addition.trim().is_empty() { own.to_owned() } else { format!("{own}\n\n{}", addition.trim()) }
}

/// The question, with what is known of the input.
pub(crate) fn question(text: &str, about: &About) -> String {
    let About { characters, prefix } = about;
    let fence = super::fence(prefix);
    format!("{text}\n\n`context` has {characters} characters. It begins with:\n{fence}\n{prefix}\n{fence}")
}
