//! Asks the model and tells the run what it says.

use std::sync::Arc;

use super::{Form, inputs::To};
use crate::{reply::broke_off, telemetry};
use domain::{FailureCode, Input, MessageId, ModelReply};
use futures_util::StreamExt as _;
use model::{Delta, Error, Model, Request};

/// Asks, and sends inputs until the reply is complete or has failed.
pub(super) async fn ask(
    model: Arc<dyn Model>,
    request: Request,
    form: Option<Form>,
    message: MessageId,
    to: To,
) {
    let end = match relay(&*model, request, &message, &to).await {
        Ok(reply) => {
            telemetry::model_replied(&model.info().name, reply.usage);
            let in_form = form.is_none_or(|form| form.fits(&reply.message.joined_text()));
            let model::Reply { message: said, usage, finish_reason, exchange } = reply;
            let reply = ModelReply { message: said, usage, finish_reason, in_form, exchange };
            Input::ModelReplied { message, reply }
        }
        Err(error) => Input::ModelFailed { message, code: code(&error), text: error.to_string() },
    };
    // A run that has ended wants no input.
    let _ = to.send(end).await;
}

async fn relay(
    model: &dyn Model,
    request: Request,
    message: &MessageId,
    to: &To,
) -> Result<model::Reply, Error> {
    let mut deltas = model.call(request).await?;
    while let Some(delta) = deltas.next().await {
        let input = match delta? {
            Delta::Text(text) => Input::TextDelta { message: message.clone(), text },
            Delta::Thinking(text) => Input::ThinkingDelta { message: message.clone(), text },
            Delta::Done(reply) => return Ok(*reply),
        };
        if to.send(input).await.is_err() {
            break;
        }
    }
    Err(broke_off())
}

fn code(error: &Error) -> FailureCode {
    match error {
        Error::RateLimited { retry_after, .. } => FailureCode::RateLimited { retry_after: *retry_after },
        Error::QuotaExhausted(_) => FailureCode::QuotaExhausted,
        Error::Unauthenticated(_) => FailureCode::Unauthenticated,
        Error::Rejected(_) => FailureCode::Rejected,
        Error::Unavailable(_) => FailureCode::ModelUnavailable,
        Error::Malformed(_) => FailureCode::MalformedReply,
    }
}
