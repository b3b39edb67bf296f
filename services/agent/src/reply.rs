//! A model's reply as a whole, for whoever has nobody to show its pieces to.

use futures_util::StreamExt as _;
use model::{Delta, Error, Model, Reply, Request};

use crate::telemetry;

/// Asks a model, and waits until its reply is complete.
pub(crate) async fn reply(model: &dyn Model, request: Request) -> Result<Reply, Error> {
    let mut deltas = model.call(request).await?;
    while let Some(delta) = deltas.next().await {
        match delta? {
            Delta::Text(_) | Delta::Thinking(_) => {}
            Delta::Done(reply) => {
                telemetry::model_replied(&model.info().name, reply.usage);
                return Ok(*reply);
            }
        }
    }
    Err(broke_off())
}

/// The stream has ended before the reply has.
pub(crate) fn broke_off() -> Error {
    Error::Unavailable("the model's reply broke off".to_owned())
}
