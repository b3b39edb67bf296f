//! Pictures and documents among the results of tools: models get them as such, and not as text.

use domain::{Document, Image, ToolResult};
use serde::Deserialize;

/// A content part, as executors write it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Shown {
    Image { media_type: String, data: String },
    Document { media_type: String, data: String },
}

/// A result that is a picture or a document becomes one that a model sees; any other stays as it is.
pub(super) fn shown(result: ToolResult) -> ToolResult {
    let Ok(shown) = serde_json::from_str(&result.data) else { return result };
    let refused = |what| ToolResult::error(format!("Error: It is {what} that no model can be given."));
    match shown {
        Shown::Image { media_type, data } => {
            let about = about("picture", &media_type, &data);
            let image = Image { url: format!("data:{media_type};base64,{data}"), ..Image::default() };
            match image.check() {
                Ok(()) => ToolResult { data: about, images: vec![image], ..result },
                Err(_) => refused(about),
            }
        }
        Shown::Document { media_type, data } => {
            let about = about("document", &media_type, &data);
            let document = Document { media_type, data };
            match document.check() {
                Ok(()) => ToolResult { data: about, documents: vec![document], ..result },
                Err(_) => refused(about),
            }
        }
    }
}

fn about(what: &str, media_type: &str, data: &str) -> String {
    format!("a {what} ({media_type}, {} bytes)", data.trim_end_matches('=').len() * 3 / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(data: &str) -> ToolResult {
        ToolResult::success(data)
    }

    #[test]
    fn pictures_and_documents_are_shown_to_models_that_see() {
        let picture = r#"{"type":"image","mediaType":"image/png","data":"AAAA"}"#;
        let seen = shown(result(picture));
        assert_eq!(seen.data, "a picture (image/png, 3 bytes)");
        let image = Image { url: "data:image/png;base64,AAAA".to_owned(), ..Image::default() };
        assert_eq!(seen.images, [image]);
        let document = r#"{"type":"document","mediaType":"application/pdf","data":"AA=="}"#;
        assert_eq!(shown(result(document)).documents[0].data, "AA==");
        let empty = r#"{"type":"image","mediaType":"image/png","data":""}"#;
        assert!(shown(result(empty)).error.is_some(), "an empty file is no picture");
        for other in ["", "{}", "<file></file>", r#"{"type":"video"}"#] {
            assert_eq!(shown(result(other)), result(other));
        }
    }
}
