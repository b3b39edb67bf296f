//! Asks the model and tells the run what it says.

use std::sync::Arc;

use domain::{FailureCode, Input, MessageId, ModelReply};
use futures_util::StreamExt as _;
use model::{Delta, Error, Model, Request};
use tokio::sync::mpsc;

use crate::telemetry;

/// Asks, and sends inputs until the reply is complete or has failed.
pub(super) async fn ask(
    model: Arc<dyn Model>,
    request: Request,
    message: MessageId,
    to: mpsc::Sender<Input>,
) {
    let end = match relay(&*model, request, &message, &to).await {
        Ok(reply) => {
            telemetry::model_replied(&model.info().name, reply.usage);
            let reply =
                ModelReply { message: reply.message, usage: reply.usage, finish_reason: reply.finish_reason };
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
    to: &mpsc::Sender<Input>,
) -> Result<model::Reply, Error> {
    let mut deltas = model.call(request).await?;
    while let Some(delta) = deltas.next().await {
        let input = match delta? {
            Delta::Text(text) => Input::TextDelta { message: message.clone(), text },
            Delta::Thinking(text) => Input::ThinkingDelta { message: message.clone(), text },
            Delta::Done(reply) => return Ok(reply),
        };
        if to.send(input).await.is_err() {
            break;
        }
    }
    Err(Error::Unavailable("the model's reply broke off".to_owned()))
}

fn code(error: &Error) -> FailureCode {
    match error {
        Error::RateLimited { .. } => FailureCode::RateLimited,
        Error::Unauthenticated(_) => FailureCode::Unauthenticated,
        Error::Rejected(_) => FailureCode::Rejected,
        Error::Unavailable(_) => FailureCode::ModelUnavailable,
        Error::Malformed(_) => FailureCode::MalformedReply,
    }
}
