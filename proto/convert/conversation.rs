//! Messages, parts and tool calls.

use domain::{CallId, Document, Image, Message, Part, Role, Thinking, ToolCall};

use super::{Malformed, non_empty};
use crate::agent as wire;

impl From<Role> for wire::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::System => Self::System,
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
        }
    }
}

impl TryFrom<wire::Role> for Role {
    type Error = Malformed;

    fn try_from(role: wire::Role) -> Result<Self, Malformed> {
        match role {
            wire::Role::System => Ok(Self::System),
            wire::Role::User => Ok(Self::User),
            wire::Role::Assistant => Ok(Self::Assistant),
            wire::Role::Tool => Ok(Self::Tool),
            wire::Role::Unspecified => Err(Malformed("a message has no role")),
        }
    }
}

impl From<Message> for wire::Message {
    fn from(message: Message) -> Self {
        let (tool_call_id, tool_name) = match message.answers {
            Some((call, tool)) => (call.as_str().to_owned(), tool),
            None => Default::default(),
        };
        Self {
            role: wire::Role::from(message.role).into(),
            parts: message.parts.into_iter().map(Into::into).collect(),
            tool_calls: message.tool_calls.into_iter().map(Into::into).collect(),
            tool_call_id,
            tool_name,
            client_json: message.client_json.unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::Message> for Message {
    type Error = Malformed;

    fn try_from(message: wire::Message) -> Result<Self, Malformed> {
        let role = Role::try_from(message.role())?;
        if role == Role::Tool && message.tool_call_id.is_empty() {
            return Err(Malformed("a tool message does not say which call it answers"));
        }
        Ok(Self {
            role,
            parts: message.parts.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            tool_calls: message.tool_calls.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            answers: non_empty(message.tool_call_id).map(|id| (CallId::new(id), message.tool_name)),
            client_json: non_empty(message.client_json),
        })
    }
}

impl From<Part> for wire::Part {
    fn from(part: Part) -> Self {
        let kind = match part {
            Part::Text(text) => wire::part::Kind::Text(text),
            Part::Image(image) => wire::part::Kind::Image(image.into()),
            Part::Document(document) => wire::part::Kind::Document(document.into()),
            Part::Thinking(thinking) => wire::part::Kind::Thinking(wire::Thinking {
                text: thinking.text,
                signature: thinking.signature.unwrap_or_default(),
                redacted: thinking.redacted.unwrap_or_default(),
            }),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<wire::Part> for Part {
    type Error = Malformed;

    fn try_from(part: wire::Part) -> Result<Self, Malformed> {
        match part.kind {
            Some(wire::part::Kind::Text(text)) => Ok(Self::Text(text)),
            Some(wire::part::Kind::Image(image)) => Ok(Self::Image(image.into())),
            Some(wire::part::Kind::Document(document)) => Ok(Self::Document(document.into())),
            Some(wire::part::Kind::Thinking(thinking)) => Ok(Self::Thinking(Thinking {
                text: thinking.text,
                signature: non_empty(thinking.signature),
                redacted: non_empty(thinking.redacted),
            })),
            None => Err(Malformed("a part of a message is empty")),
        }
    }
}

impl From<Image> for wire::Image {
    fn from(image: Image) -> Self {
        Self {
            url: image.url,
            detail: image.detail.unwrap_or_default(),
            format: image.format.unwrap_or_default(),
        }
    }
}

impl From<wire::Image> for Image {
    fn from(image: wire::Image) -> Self {
        Self { url: image.url, detail: non_empty(image.detail), format: non_empty(image.format) }
    }
}

impl From<Document> for wire::Document {
    fn from(Document { media_type, data }: Document) -> Self {
        Self { media_type, data }
    }
}

impl From<wire::Document> for Document {
    fn from(wire::Document { media_type, data }: wire::Document) -> Self {
        Self { media_type, data }
    }
}

impl From<ToolCall> for wire::ToolCall {
    fn from(call: ToolCall) -> Self {
        Self { id: call.id.as_str().to_owned(), name: call.name, arguments_json: call.arguments }
    }
}

impl TryFrom<wire::ToolCall> for ToolCall {
    type Error = Malformed;

    fn try_from(call: wire::ToolCall) -> Result<Self, Malformed> {
        if call.id.is_empty() {
            return Err(Malformed("a tool call has no id"));
        }
        Ok(Self { id: CallId::new(call.id), name: call.name, arguments: call.arguments_json })
    }
}
