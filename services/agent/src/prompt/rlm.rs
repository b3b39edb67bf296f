//! What a model is told that works by code.

use domain::{Message, Part, Role};

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
    format!("{text}{}", note(about))
}

/// Says what is known of the input with what the user has said last.
pub(crate) fn tell(messages: &mut Vec<Message>, about: &About) {
    let Some(said) = messages.iter_mut().rfind(|message| message.role == Role::User) else {
        return messages.insert(0, Message::text(Role::User, note(about).trim_start()));
    };
    match said.parts.last_mut() {
        Some(Part::Text(text)) => text.push_str(&note(about)),
        Some(Part::Image(_) | Part::Document(_) | Part::Thinking(_)) | None => {
            said.parts.push(Part::Text(note(about)));
        }
    }
}

fn note(about: &About) -> String {
    let About { characters, prefix } = about;
    let fence = super::fence(prefix);
    format!("\n\n`context` has {characters} characters. It begins with:\n{fence}\n{prefix}\n{fence}")
}
