//! What an MCP server returns, as a model reads it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use wire::executor::InlineImage;

use crate::tools::Presentation;

/// Images of a result that are passed on, and bytes that they may have together.
const MOST_IMAGES: usize = 8;
const MOST_BYTES: usize = 3 << 20;
/// The types that providers take.
const TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const UNKNOWN_PART: &str = "[a part of an unknown kind is left out]";

pub(super) fn present(result: CallToolResult) -> Presentation {
    let mut images = Vec::new();
    let parts = result.content.into_iter().map(|part| text(part, &mut images)).collect::<Vec<_>>();
    let data = match (parts.is_empty(), result.structured_content) {
        (true, Some(structured)) => structured.to_string(),
        (true, None) | (false, _) => parts.join("\n"),
    };
    if result.is_error == Some(true) {
        Presentation::Error { error: data, data: String::new() }
    } else if !images.is_empty() {
        Presentation::Pictures { data, images }
    } else if data.trim().is_empty() {
        Presentation::NoData(data)
    } else {
        Presentation::Success(data)
    }
}

fn text(part: ContentBlock, images: &mut Vec<InlineImage>) -> String {
    match part {
        ContentBlock::Text(part) => part.text,
        ContentBlock::Image(part) => match picture(&part.mime_type, &part.data) {
            Some(image) if fits(images, &image) => {
                images.push(image);
                format!("[image {}: {}]", images.len(), part.mime_type)
            }
            Some(_) | None => format!("[an image ({}) is left out]", part.mime_type),
        },
        ContentBlock::Audio(part) => format!("[a recording ({}) is left out]", part.mime_type),
        ContentBlock::Resource(part) => match part.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, .. } => format!("[the data of {uri} is left out]"),
            _ => UNKNOWN_PART.to_owned(),
        },
        ContentBlock::ResourceLink(link) => link.uri,
        _ => UNKNOWN_PART.to_owned(),
    }
}

fn fits(images: &[InlineImage], image: &InlineImage) -> bool {
    let bytes: usize = images.iter().map(|image| image.data.len()).sum();
    images.len() < MOST_IMAGES && bytes + image.data.len() <= MOST_BYTES
}

/// An image that a provider takes.
fn picture(media_type: &str, data: &str) -> Option<InlineImage> {
    let known = TYPES.iter().find(|known| known.eq_ignore_ascii_case(media_type))?;
    let data = STANDARD.decode(data).ok().filter(|data| !data.is_empty())?;
    Some(InlineImage { media_type: (*known).to_owned(), data: data.into() })
}
