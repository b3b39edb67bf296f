//! Documents that belong to a conversation, as bytes that a model's provider reads.

use crate::image::is_base64;

/// The type of document that providers take.
const PDF: &str = "application/pdf";

/// A document, inline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// MIME type.
    pub media_type: String,
    /// The bytes, in base64.
    pub data: String,
}

/// Why no model can be given a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    /// Providers do not take this type.
    #[error("documents of the type `{0}` cannot be read; PDF and texts can")]
    Type(String),
    /// The bytes are not in base64.
    #[error("the document's data is not base64")]
    Data,
}

impl Document {
    /// Whether a model can be given it, as far as can be told without looking inside.
    ///
    /// # Errors
    /// [`BadDocument`] says why not.
    pub fn check(&self) -> Result<(), BadDocument> {
        if self.media_type != PDF {
            return Err(BadDocument::Type(self.media_type.chars().take(100).collect()));
        }
        if is_base64(&self.data) { Ok(()) } else { Err(BadDocument::Data) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_provider_can_read_is_a_document() {
        let checked = |media_type: &str, data: &str| {
            Document { media_type: media_type.to_owned(), data: data.to_owned() }.check()
        };
        assert_eq!(checked(PDF, "AAAA"), Ok(()));
        assert_eq!(checked(PDF, "A A"), Err(BadDocument::Data));
        assert_eq!(checked("image/png", "AAAA"), Err(BadDocument::Type("image/png".to_owned())));
    }
}
