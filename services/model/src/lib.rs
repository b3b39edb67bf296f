//! Model providers behind one trait that always streams.
//!
//! # Layout
//! * [`Model`], [`Request`], [`Delta`], [`Error`]: the port that the agent speaks to

mod error;
mod request;

use futures_util::{future::BoxFuture, stream::BoxStream};

pub use error::Error;
pub use request::{Delta, Reply, Request, ToolSpec};

/// What is known of a model before it is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Name that requests use.
    pub name: String,
    /// Provider family: `openai`, `anthropic` or `builtin`.
    pub provider: String,
    /// The provider's own id of the model.
    pub id: String,
    /// Tokens that fit into one call, prompt and completion together.
    pub context_window: u64,
    /// Tokens that one reply may have.
    pub max_output_tokens: u64,
}

/// A stream of deltas; it ends after [`Delta::Done`] or after an error.
pub type Deltas = BoxStream<'static, Result<Delta, Error>>;

/// A model that can be asked. Dropping the future or the stream ends the call at the provider.
pub trait Model: Send + Sync + 'static {
    /// What is known of it.
    fn info(&self) -> &Info;

    /// Asks the model. Retries happen inside, and only before the first delta.
    ///
    /// # Errors
    /// [`Error`] says whose fault it was; what a provider wrote about it is in the text, secrets removed.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Deltas, Error>>;
}
