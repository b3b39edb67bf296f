//! Scripted model servers: real sockets, replies that are a pure function of the request.
//!
//! A script stands anywhere in a user message as `FAKE_LLM{...json...}`; [`Script`] lists its fields. The newest
//! user message that carries one governs, and the round is the number of assistant messages with tool calls
//! after it. A request that offers no tools gets the answer. Call ids are `call_m{M}r{R}t{T}`: messages in the
//! request, round, tool.
//!
//! # Layout
//! * [`script`](Script): reads scripts and decides the reply, in no provider's form
//! * [`server`](Scripted): listens, counts, records, delivers well or badly
//! * [`openai`](OpenAi), [`anthropic`](Anthropic): the two APIs

mod anthropic;
mod openai;
mod script;
mod server;

pub use anthropic::Anthropic;
pub use openai::OpenAi;
pub use script::Script;
pub use server::{Api, Recorded, Scripted};

/// A server of OpenAI's chat completions.
pub type ScriptedOpenAi = Scripted<OpenAi>;
/// A server of Anthropic's messages.
pub type ScriptedAnthropic = Scripted<Anthropic>;
