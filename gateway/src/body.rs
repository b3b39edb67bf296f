//! Reading request bodies, bounded in size and time, and all together in memory.

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::{body::BodyDataStream, extract::Request};
use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode, header};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{problem::Problem, state::Shared};

/// How long, and how many times the limit, the rest of a body is still taken in after it was refused: a connection that
/// is closed on a client that is writing takes the answer with it.
const LINGER: Duration = Duration::from_secs(10);
const LINGER_FACTOR: usize = 10;
/// Room is taken in pieces of this size. What is smaller than a piece is not counted: the number of connections bounds
/// it.
const PIECE: usize = 64 << 10;

/// Room for the bodies of all requests.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    /// So many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / PIECE).min(Semaphore::MAX_PERMITS))))
    }
}

/// The room of a body that has become a question, until that is at the agent.
#[derive(Debug)]
pub(crate) struct Taken(
    #[expect(dead_code, reason = "it is there to be dropped")] Option<OwnedSemaphorePermit>,
);

/// A body. It takes its room until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Body {
    /// Its bytes, for whoever needs them longer than there is room for it.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its room, which what was made of it takes from now on.
    pub(crate) fn into_room(self) -> Taken {
        Taken(self.taken)
    }

    fn push(&mut self, chunk: &[u8], room: &Room) -> Result<(), Problem> {
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = ((self.bytes.len() + chunk.len()) / PIECE).saturating_sub(taken);
        if more > 0 {
            let more = u32::try_from(more)
                .ok()
                .and_then(|more| Arc::clone(&room.0).try_acquire_many_owned(more).ok());
            let more = more.ok_or_else(Problem::overloaded)?;
            match &mut self.taken {
                Some(taken) => taken.merge(more),
                none => *none = Some(more),
            }
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of a JSON request.
pub(crate) async fn read_json(request: Request, shared: &Shared) -> Result<Body, Problem> {
    read_long_json(request, shared, shared.config.body_limit).await
}

/// The body of a JSON request that may be as long as this.
pub(crate) async fn read_long_json(request: Request, shared: &Shared, limit: usize) -> Result<Body, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The content type must be application/json",
        ));
    }
    read(request, shared, limit).await
}

/// The body of a request, of any kind.
pub(crate) async fn read(request: Request, shared: &Shared, limit: usize) -> Result<Body, Problem> {
    timeout(shared.config.body_deadline, read_all(request, &shared.bodies, limit)).await.unwrap_or_else(
        |_| Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "The body took too long to arrive")),
    )
}

/// A missing content type is read as JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return true };
    let media = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
}

async fn read_all(request: Request, room: &Room, limit: usize) -> Result<Body, Problem> {
    let too_large =
        || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The body is larger than {limit} bytes"));
    let announced =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut chunks = request.into_body().into_data_stream();
    if announced.is_some_and(|length: u64| length > limit as u64) {
        linger(chunks, limit);
        return Err(too_large());
    }
    let mut body = Body::default();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "The body could not be read"))?;
        if body.len() + chunk.len() > limit {
            linger(chunks, limit);
            return Err(too_large());
        }
        body.push(&chunk, room)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_take_their_room_and_give_it_back() {
        let full = vec![0; 16 * PIECE];
        let room = Room::new(full.len());
        let mut body = Body::default();
        body.push(&full[1..], &room).unwrap();
        body.push(&full[..PIECE], &room).unwrap();
        let mut small = Body::default();
        small.push(&full[..PIECE - 1], &room).unwrap();
        assert!(small.push(&full[..1], &room).is_err());
        drop(body);
        small.push(&full[..1], &room).unwrap();
        assert_eq!(small.len(), PIECE);
    }
}
