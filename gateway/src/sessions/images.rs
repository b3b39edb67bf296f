//! Images that are sent ahead: the body is the image itself.

use axum::{
    Json,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use wire::session::{Image, PutImageRequest};

use super::{Sessions, ids, last, object::Object, problem::Problem, query::Query};
use crate::body;

/// Bytes of the largest image.
const LARGEST: usize = 8 << 20;
/// Bytes of the longest name.
const LONGEST: usize = 255;

/// `POST /v1/images`
pub(super) async fn create(sessions: Sessions, request: Request) -> Result<Response, Problem> {
    let query = Query::parse(request.uri().query());
    let filename = query.text("filename").unwrap_or_default().to_owned();
    if filename.len() > LONGEST || filename.contains(char::is_control) {
        return Err(Problem::bad(format!("filename: at most {LONGEST} printable characters")));
    }
    let said = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let said = said.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let content = body::read(request, &sessions.shared, LARGEST).await?;
    let media_type = sniffed(&content).filter(|kind| said == *kind || is_loose(&said));
    let Some(media_type) = media_type else {
        let detail = "an image is sent as it is: PNG, JPEG, GIF or WebP, with its Content-Type";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    };
    let (caller, media_type) = (sessions.caller(), media_type.to_owned());
    let image = sessions
        .upstream()
        .put_image(PutImageRequest { caller, filename, media_type, content: content.into_bytes() })
        .await?;
    Ok((StatusCode::CREATED, Json(json(image))).into_response())
}

/// `GET /v1/images/{id}`
pub(super) async fn fetch(sessions: Sessions, request: Request) -> Result<Response, Problem> {
    let id = last(&request);
    if !ids::is("img_", &id) {
        return Err(Problem::bad("Invalid image ID: it is `img_` and 32 lower-case hex digits"));
    }
    let (image, content) = sessions.upstream().image(sessions.caller(), id).await?;
    let kind = HeaderValue::try_from(image.media_type)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    let nosniff = HeaderValue::from_static("nosniff");
    Ok(([(header::CONTENT_TYPE, kind), (header::X_CONTENT_TYPE_OPTIONS, nosniff)], content).into_response())
}

/// What an image is by its first bytes.
fn sniffed(content: &[u8]) -> Option<&'static str> {
    match content {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Types that do not say what the image is.
fn is_loose(said: &str) -> bool {
    matches!(said, "" | "image/jpg" | "application/octet-stream")
}

fn json(image: Image) -> Value {
    Object::default()
        .with("id", image.id)
        .text("filename", image.filename)
        .with("media_type", image.media_type)
        .with("size_bytes", image.size)
        .with("created_at", image.created_at.map(|time| time.to_string()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_what_its_first_bytes_say() {
        assert_eq!(sniffed(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(sniffed(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        for other in [&b""[..], b"<svg>", b"RIFF\0\0\0\0WAVE", b"\xff\xd8"] {
            assert_eq!(sniffed(other), None);
        }
    }
}
