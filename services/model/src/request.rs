//! What a model is asked and what it says, in no provider's form.

use std::sync::Arc;

use domain::{Effort, Exchange, Message, ToolCall, Usage};

/// A tool on offer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Unique name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// One call of a model.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The system prompt. It comes before everything else and stays the same over a run, so that providers
    /// can cache it.
    pub system: String,
    /// The conversation, oldest first. System messages in it are instructions of the client.
    pub messages: Vec<Message>,
    /// Tools on offer; empty means that the model must answer.
    pub tools: Arc<[ToolSpec]>,
    /// A JSON object, in the form of OpenAI's `response_format`, that the answer must follow.
    pub response_format: Option<serde_json::Value>,
    /// How much it is to think; `None` leaves it to the model.
    pub effort: Option<Effort>,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The whole reply; nothing follows.
    Done(Box<Reply>),
}

/// A whole reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The message: role assistant, parts in the model's order, tool calls too, with unique ids and arguments as
    /// compact JSON objects with sorted keys ([`domain::ToolCall::arguments`], [`crate::MALFORMED_ARGUMENTS`]).
    pub message: Message,
    /// Tokens; estimated if the provider reports none. The cost is filled in from the model's prices.
    pub usage: Usage,
    /// The provider's reason to stop in OpenAI's words: `stop`, `tool_calls`, `length`, `content_filter`.
    pub finish_reason: String,
    /// How it was had.
    pub exchange: Exchange,
}

impl Reply {
    /// The calls of the message.
    pub fn calls(&self) -> &[ToolCall] {
        &self.message.tool_calls
    }
}
