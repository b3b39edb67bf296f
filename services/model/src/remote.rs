//! A model behind a provider's API: the gate, the retries and the span around each call.

use std::sync::Arc;

use futures_util::{StreamExt, future::BoxFuture, stream};
use tokio::time::{Instant, sleep};
use tracing::{Instrument, Span, field::Empty, info_span};

use crate::{
    Delta, Deltas, Error, Info, Model, Request, call::Call, draft::Context, endpoint::Endpoint, gate::Gate,
    retry::Backoff,
};

/// A model behind a provider's API.
#[derive(Debug)]
pub(crate) struct Remote {
    info: Info,
    gate: Gate,
    endpoint: Arc<Endpoint>,
}

impl Remote {
    pub(crate) fn new(info: Info, endpoint: Endpoint) -> Self {
        let gate = Gate::new(&info.name, endpoint.settings.calls_per_model);
        Self { info, gate, endpoint: Arc::new(endpoint) }
    }

    fn span(&self) -> Span {
        info_span!(
            "chat",
            otel.name = format!("chat {}", self.info.id),
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = self.info.provider,
            gen_ai.request.model = self.info.id,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            "error.type" = Empty,
        )
    }

    /// Asks until there is a first delta.
    async fn start(&self, request: &Request) -> Result<Call, Error> {
        let settings = &self.endpoint.settings;
        let deadline = Instant::now() + settings.request_timeout;
        let (body, context) = (self.endpoint.body(request), Context::of(request));
        let mut backoff = Backoff::new(settings);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let permit = self.gate.enter(settings.rate_limit_wait.min(left)).await?;
            let vain = backoff.vain();
            let attempt = async {
                let response = self.endpoint.send(body.clone(), deadline).await?;
                Call::start(self.endpoint.clone(), response, context.clone(), deadline, vain, permit).await
            };
            let failure = match Box::pin(attempt).await {
                Ok(call) => return Ok(call),
                Err(failure) => failure,
            };
            let pause = backoff.pause(&failure).filter(|pause| Instant::now() + *pause < deadline);
            let Some(pause) = pause else { return Err(self.endpoint.shown(failure)) };
            tracing::warn!(
                model = self.info.name,
                kind = failure.error.kind(),
                pause_ms = pause.as_millis(),
                "the model call is tried again"
            );
            sleep(pause).await;
        }
    }
}

impl Model for Remote {
    fn info(&self) -> &Info {
        &self.info
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Deltas, Error>> {
        let span = self.span();
        let started = async move {
            let call = self.start(&request).await.inspect_err(record_error)?;
            Ok(deltas(call, Span::current()))
        };
        Box::pin(started.instrument(span))
    }
}

/// The call as a stream; the span lasts as long.
fn deltas(call: Call, span: Span) -> Deltas {
    stream::unfold((call, span), |(mut call, span)| async move {
        let next = async {
            let delta = call.next().await?;
            record(&delta);
            Some(delta)
        };
        let delta = next.instrument(span.clone()).await?;
        Some((delta, (call, span)))
    })
    .boxed()
}

fn record(delta: &Result<Delta, Error>) {
    match delta {
        Ok(Delta::Done(reply)) => {
            let span = Span::current();
            span.record("gen_ai.usage.input_tokens", reply.usage.prompt);
            span.record("gen_ai.usage.output_tokens", reply.usage.completion);
        }
        Ok(Delta::Text(_) | Delta::Thinking(_)) => {}
        Err(error) => record_error(error),
    }
}

fn record_error(error: &Error) {
    Span::current().record("error.type", error.kind());
}
