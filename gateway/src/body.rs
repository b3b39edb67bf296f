//! Reading request bodies, bounded in size and time.

use std::time::Duration;

use axum::{body::BodyDataStream, extract::Request};
use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode, header};
use tokio::time::timeout;

use crate::{config::Config, problem::Problem};

/// How long, and how many times the limit, the rest of a body is still taken in after it was refused: a connection that
/// is closed on a client that is writing takes the answer with it.
const LINGER: Duration = Duration::from_secs(10);
const LINGER_FACTOR: usize = 10;

/// The body of a JSON request.
pub(crate) async fn read_json(request: Request, config: &Config) -> Result<Vec<u8>, Problem> {
    read_long_json(request, config, config.body_limit).await
}

/// The body of a JSON request that may be as long as this.
pub(crate) async fn read_long_json(
    request: Request,
    config: &Config,
    limit: usize,
) -> Result<Vec<u8>, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The content type must be application/json",
        ));
    }
    read(request, config, limit).await
}

/// The body of a request, of any kind.
pub(crate) async fn read(request: Request, config: &Config, limit: usize) -> Result<Vec<u8>, Problem> {
    timeout(config.body_deadline, read_all(request, limit)).await.unwrap_or_else(|_| {
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

async fn read_all(request: Request, limit: usize) -> Result<Vec<u8>, Problem> {
    let too_large =
        || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, &format!("The body is larger than {limit} bytes"));
    let announced =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut chunks = request.into_body().into_data_stream();
    if announced.is_some_and(|length: u64| length > limit as u64) {
        linger(chunks, limit);
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "The body could not be read"))?;
        if body.len() + chunk.len() > limit {
            linger(chunks, limit);
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Takes in the rest of a body and forgets it, while the answer is on its way. Ends by itself.
fn linger(mut chunks: BodyDataStream, limit: usize) {
    tokio::spawn(timeout(LINGER, async move {
        let mut left = limit.saturating_mul(LINGER_FACTOR);
        while let Some(Ok(chunk)) = chunks.next().await {
            match left.checked_sub(chunk.len()) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    }));
}
