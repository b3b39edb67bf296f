//! Estimates of token counts, for what no provider has counted yet.
//!
//! English prose has about four bytes a token, and JSON and logs about three, in the common tokenizers. An
//! estimate is good enough for budgets and for what a client shows; costs use the provider's own counts.

use crate::{ContextSize, Message, Part, Role};

/// Tokens that each message costs beyond its text.
const PER_MESSAGE: u64 = 4;
/// Tokens of an image whose size is not known.
const PER_IMAGE: u64 = 1500;
/// Characters of a document for one of its tokens: pages are shown as images, too.
const DOCUMENT_CHARACTERS: u64 = 30;

/// Tokens of a text.
pub fn of_text(text: &str) -> u64 {
    let dense = text.bytes().filter(|byte| byte.is_ascii_punctuation() || !byte.is_ascii()).count() as u64;
    let sparse = text.len() as u64 - dense;
    (sparse / 4 + dense / 2).max(u64::from(!text.is_empty()))
}

/// Bytes of a text that have at most so many tokens.
pub fn fitting(text: &str, most: u64) -> usize {
    let mut cut = text.len();
    loop {
        let size = of_text(&text[..cut]);
        if size <= most {
            return cut;
        }
        // The estimate grows evenly enough with the text for a cut in proportion; if not, there is another.
        let keep = (cut as u64).saturating_mul(most) / size;
        cut = text.floor_char_boundary(usize::try_from(keep).unwrap_or(usize::MAX).min(cut - 1));
    }
}

/// Tokens of a message.
pub fn of_message(message: &Message) -> u64 {
    let parts: u64 = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => of_text(text),
            Part::Image(_) => PER_IMAGE,
            Part::Document(document) => PER_IMAGE + document.data.len() as u64 / DOCUMENT_CHARACTERS,
            Part::Thinking(thinking) => of_text(&thinking.text),
        })
        .sum();
    let calls: u64 =
        message.tool_calls.iter().map(|call| of_text(&call.name) + of_text(&call.arguments)).sum();
    PER_MESSAGE + parts + calls
}

impl ContextSize {
    /// Adds a message.
    pub fn add(&mut self, message: &Message) {
        let tokens = of_message(message);
        match message.role {
            Role::System => self.system += tokens,
            Role::User => self.user += tokens,
            Role::Assistant => self.assistant += tokens,
            Role::Tool => self.tools += tokens,
        }
    }
}
