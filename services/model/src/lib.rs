//! Model providers behind one trait that always streams.
//!
//! # Layout
//! * [`Model`], [`Request`], [`Delta`], [`Error`]: the port that the agent speaks to
//! * [`list`](Catalogue): the models there are, from HolmesGPT's `modelList` and the environment
//! * `remote`: a model behind a provider: `gate`, `retry`, the span of the call
//! * `endpoint`, `call`: a request on its way out, and its reply on its way in
//! * `api`: what a provider's API is; `openai`, `anthropic`: the two that there are
//! * `draft`, `failure`: what all APIs' replies and errors become
//! * `sse`, `prices`, [`settings`](Settings): as they say

mod anthropic;
mod api;
mod call;
mod draft;
mod endpoint;
mod error;
mod failure;
mod gate;
mod list;
mod openai;
mod prices;
mod remote;
mod request;
mod retry;
mod settings;
mod sse;

use futures_util::{future::BoxFuture, stream::BoxStream};

pub use draft::MALFORMED_ARGUMENTS;
pub use error::Error;
pub use list::{Catalogue, EntryError, ListError, UnknownModel};
pub use request::{Delta, Reply, Request, ToolSpec};
pub use settings::{Outgoing, Settings};

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
    /// Whether it sees images, if that is known.
    pub sees_images: Option<bool>,
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
