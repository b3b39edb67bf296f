//! One call whose reply streams in.

use std::sync::Arc;

use domain::{Exchange, Usage};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use crate::{
    Delta, Error,
    draft::{Context, Draft},
    endpoint::{Endpoint, cause},
    failure::Failure,
    gate::Permit,
    retry::Vain,
    sse::{Decoder, TooLong},
};

const MIB: usize = 1024 * 1024;
/// Bytes that one event of a stream may have.
const EVENT_LIMIT: usize = 8 * MIB;
/// Bytes that a whole reply may have, framing included.
const REPLY_LIMIT: usize = 64 * MIB;

/// A call whose reply streams in. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Call {
    endpoint: Arc<Endpoint>,
    response: Response,
    form: Form,
    received: usize,
    draft: Draft,
    context: Option<Context>,
    deadline: Instant,
    /// What was asked in vain before.
    vain: Vain,
    _permit: Permit,
}

/// How the reply is written.
#[derive(Debug)]
enum Form {
    Events(Decoder),
    /// Some gateways answer a request for a stream with one document.
    Document(Vec<u8>),
}

impl Call {
    /// A call whose first delta is there.
    pub(crate) async fn start(
        endpoint: Arc<Endpoint>,
        response: Response,
        context: Context,
        deadline: Instant,
        vain: Vain,
        permit: Permit,
    ) -> Result<Self, Failure> {
        let kind = response.headers().get(http::header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let document = ["application/json", "text/html"].iter().any(|other| kind.starts_with(other));
        let mut call = Self {
            endpoint,
            response,
            form: if document { Form::Document(Vec::new()) } else { Form::Events(Decoder::new(EVENT_LIMIT)) },
            received: 0,
            draft: Draft::default(),
            context: Some(context),
            deadline,
            vain,
            _permit: permit,
        };
        while call.draft.deltas.is_empty() && !call.draft.ended {
            call.receive().await?;
        }
        Ok(call)
    }

    /// The next delta; `None` once the reply is done or has failed.
    pub(crate) async fn next(&mut self) -> Option<Result<Delta, Error>> {
        loop {
            if let Some(delta) = self.draft.deltas.pop_front() {
                return Some(Ok(delta));
            }
            if self.draft.ended {
                let context = self.context.take()?;
                let done = self.finish(context);
                return Some(done.map_err(|failure| self.endpoint.shown(failure)));
            }
            if let Err(failure) = self.receive().await {
                self.draft.ended = true;
                self.context = None;
                return Some(Err(self.endpoint.shown(failure)));
            }
        }
    }

    fn finish(&mut self, context: Context) -> Result<Delta, Failure> {
        let mut reply = std::mem::take(&mut self.draft).into_reply(context)?;
        self.draft.ended = true;
        reply.usage = Usage { cost_usd: self.endpoint.prices.cost(&reply.usage), ..reply.usage };
        let Vain { failures: retries, waited } = self.vain;
        reply.exchange = Exchange { retries, waited, ..reply.exchange };
        Ok(Delta::Done(Box::new(reply)))
    }

    /// Takes the next bytes. What fails after the reply is whole does not matter.
    async fn receive(&mut self) -> Result<(), Failure> {
        match self.try_receive().await {
            Err(_) if self.draft.finish_reason.is_some() => {
                self.draft.ended = true;
                Ok(())
            }
            result => result,
        }
    }

    async fn try_receive(&mut self) -> Result<(), Failure> {
        let wake = self.endpoint.wake(self.deadline);
        let Ok(chunk) = timeout_at(wake, self.response.chunk()).await else {
            return Err(self.endpoint.too_slow(self.deadline));
        };
        let chunk = chunk.map_err(|error| self.broke_off(&format!(": {}", cause(&error))))?;
        let Some(chunk) = chunk else { return self.end() };
        self.received += chunk.len();
        if self.received > REPLY_LIMIT {
            return Err(too_long());
        }
        match &mut self.form {
            Form::Document(body) => body.extend_from_slice(&chunk),
            Form::Events(decoder) => {
                for data in decoder.push(&chunk).map_err(|TooLong| too_long())? {
                    self.endpoint.api.read(&data, &mut self.draft)?;
                }
            }
        }
        Ok(())
    }

    /// The provider closed the stream.
    fn end(&mut self) -> Result<(), Failure> {
        match &self.form {
            Form::Document(body) => {
                self.endpoint.api.read(&String::from_utf8_lossy(body), &mut self.draft)?;
            }
            Form::Events(_) => return Err(self.broke_off("")),
        }
        self.draft.ended = true;
        Ok(())
    }

    fn broke_off(&self, why: &str) -> Failure {
        let host = &self.endpoint.host;
        Failure::unavailable(format!("the model provider at {host} broke off in the middle of a reply{why}"))
    }
}

fn too_long() -> Failure {
    Failure::malformed("the model provider sent more than a reply can be")
}
