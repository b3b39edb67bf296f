//! The conversation that a model sees.

use crate::{CallId, Document, Image};

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The person or program that asks.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// Tools that an assistant message asks for, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// For a tool message: the call that it answers, and the tool's name.
    pub answers: Option<(CallId, String)>,
    /// The message as a client sent it, as JSON, to be given back unchanged. No model sees it.
    pub client_json: Option<String>,
}

impl Message {
    /// A message with these parts and nothing else.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, tool_calls: Vec::new(), answers: None, client_json: None }
    }

    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::Text(text.into())])
    }

    /// The result of a tool call, as the model reads it.
    pub fn tool(call: CallId, tool: impl Into<String>, text: impl Into<String>) -> Self {
        Self { answers: Some((call, tool.into())), ..Self::text(Role::Tool, text) }
    }

    /// All text parts, joined.
    pub fn joined_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Image(_) | Part::Document(_) | Part::Thinking(_) => None,
            })
            .collect()
    }

    /// All visible thinking, joined; `None` if there is none.
    pub fn joined_thinking(&self) -> Option<String> {
        let text: String = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Thinking(thinking) => Some(thinking.text.as_str()),
                Part::Text(_) | Part::Image(_) | Part::Document(_) => None,
            })
            .collect();
        (!text.is_empty()).then_some(text)
    }
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Image),
    /// A document.
    Document(Document),
    /// What the model thought before it spoke.
    Thinking(Thinking),
}

/// A block of a model's thinking. Providers need some blocks back, unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    /// The text; empty where the provider hides it.
    pub text: String,
    /// The provider's signature.
    pub signature: Option<String>,
    /// The provider's encrypted form of a hidden block.
    pub redacted: Option<String>,
}

/// A request of a model to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// Unique within the run.
    pub id: CallId,
    /// Name of the tool.
    pub name: String,
    /// Arguments: compact JSON text of an object, keys sorted, so that equal arguments are equal text.
    pub arguments: String,
}
