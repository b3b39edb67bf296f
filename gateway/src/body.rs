//! Reading request bodies: JSON only, bounded in size and time.

use axum::extract::Request;
use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode, header};

use crate::{config::Config, problem::Problem};

/// The body of a JSON request.
pub(crate) async fn read_json(request: Request, config: &Config) -> Result<Vec<u8>, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The content type must be application/json",
        ));
    }
    tokio::time::timeout(config.body_deadline, read(request, config.body_limit)).await.unwrap_or_else(|_| {
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "The body took too long to arrive"))
    })
}

/// A missing content type is read as JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return true };
    let media = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
}

async fn read(request: Request, limit: usize) -> Result<Vec<u8>, Problem> {
    let too_large =
        || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, &format!("The body is larger than {limit} bytes"));
    let announced =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limit as u64) {
        return Err(too_large());
    }
    let mut chunks = request.into_body().into_data_stream();
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "The body could not be read"))?;
        if body.len() + chunk.len() > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
