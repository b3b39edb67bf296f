//! The conversation that clients hold: read from what they send, written to what they get.
//!
//! What a client sent goes back to it unchanged. What the run added is written in the form of OpenAI's chat
//! messages, with thinking as LiteLLM writes it. The agent's own system prompt never leaves it: a client that
//! has none gets a placeholder, which is dropped when it comes back. Messages that a dialect adds for the model
//! alone do not reach the client either.

use domain::{CallId, Image, Message, Part, Role, Thinking, ToolCall, tokens};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::marks;

/// Stands for the system prompt in histories of clients that have none of their own.
const PLACEHOLDER: &str = "(system prompt of the server)";

/// A message as clients may send it.
#[derive(Deserialize)]
struct Incoming {
    role: IncomingRole,
    content: Option<IncomingContent>,
    tool_calls: Option<Vec<IncomingCall>>,
    tool_call_id: Option<String>,
    name: Option<String>,
    reasoning_content: Option<String>,
    thinking_blocks: Option<Vec<ThinkingBlock>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum IncomingRole {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum IncomingContent {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct IncomingCall {
    id: String,
    function: IncomingFunction,
}

#[derive(Deserialize)]
struct IncomingFunction {
    name: String,
    arguments: Option<String>,
}

/// A piece of content.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart {
    Text {
        text: String,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
    /// A kind that no model here understands.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize, Serialize)]
struct ImageUrl {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
}

/// A block of thinking that a provider may want back.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThinkingBlock {
    Thinking {
        thinking: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    RedactedThinking {
        data: String,
    },
}

/// What the client sent for a message that it did not send, and will not get.
const UNSENT: &str = "null";

/// A message for the model alone.
pub(super) fn unsent(role: Role, text: String) -> Message {
    Message { client_json: Some(UNSENT.to_owned()), ..Message::text(role, text) }
}

/// Reads a message; `None` for the placeholder.
pub(super) fn read(item: &RawValue) -> Result<Option<Message>, serde_json::Error> {
    let incoming: Incoming = serde_json::from_str(item.get())?;
    let role = match incoming.role {
        IncomingRole::System => Role::System,
        IncomingRole::User => Role::User,
        IncomingRole::Assistant => Role::Assistant,
        IncomingRole::Tool => Role::Tool,
    };
    let mut parts = read_thinking(incoming.thinking_blocks, incoming.reasoning_content);
    match incoming.content {
        Some(IncomingContent::Text(text)) if role == Role::System && text == PLACEHOLDER => return Ok(None),
        Some(IncomingContent::Text(text)) => parts.push(Part::Text(text)),
        Some(IncomingContent::Parts(given)) => parts.extend(given.into_iter().filter_map(read_part)),
        None => {}
    }
    Ok(Some(Message {
        role,
        parts,
        tool_calls: incoming.tool_calls.unwrap_or_default().into_iter().map(read_call).collect(),
        answers: incoming.tool_call_id.map(|id| (CallId::new(id), incoming.name.unwrap_or_default())),
        client_json: Some(item.get().to_owned()),
    }))
}

/// The blocks say more than the text; the text alone still tells what was thought.
fn read_thinking(blocks: Option<Vec<ThinkingBlock>>, text: Option<String>) -> Vec<Part> {
    let text = text.filter(|text| !text.is_empty());
    let block = |block| match block {
        ThinkingBlock::Thinking { thinking, signature } => {
            Thinking { text: thinking, signature, redacted: None }
        }
        ThinkingBlock::RedactedThinking { data } => Thinking { redacted: Some(data), ..Thinking::default() },
    };
    match blocks {
        Some(blocks) if !blocks.is_empty() => blocks.into_iter().map(block).map(Part::Thinking).collect(),
        Some(_) | None => {
            text.map(|text| Part::Thinking(Thinking { text, ..Thinking::default() })).into_iter().collect()
        }
    }
}

fn read_part(part: ContentPart) -> Option<Part> {
    match part {
        ContentPart::Text { text } => Some(Part::Text(text)),
        ContentPart::ImageUrl { image_url: ImageUrl { url, detail, format } } => {
            Some(Part::Image(Image { url, detail, format }))
        }
        ContentPart::Unknown => None,
    }
}

fn read_call(call: IncomingCall) -> ToolCall {
    let IncomingFunction { name, arguments } = call.function;
    // Kept as they are: an approval is for these very bytes.
    let is_object = |text: &String| serde_json::from_str::<serde_json::Map<_, _>>(text).is_ok();
    let arguments = arguments.filter(is_object).unwrap_or_else(|| "{}".to_owned());
    ToolCall { id: CallId::new(call.id), name, arguments }
}

/// A message as clients get it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Outgoing {
    /// As the client sent it.
    Verbatim(Box<RawValue>),
    /// As the run made it.
    Made(Box<Made>),
}

#[derive(Debug, Serialize)]
pub(crate) struct Made {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<OutgoingContent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OutgoingCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thinking_blocks: Vec<ThinkingBlock>,
    /// Standing permissions: [`marks::GRANTS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approval_grants: Vec<String>,
    token_count: u64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OutgoingContent {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Serialize)]
struct OutgoingCall {
    function: OutgoingFunction,
    id: String,
    r#type: &'static str,
    /// The client has to run it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pending_frontend: bool,
    /// A person has to decide.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pending_approval: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_token: Option<String>,
}

#[derive(Debug, Serialize)]
struct OutgoingFunction {
    arguments: String,
    name: String,
}

/// A conversation as a client gets it, with the calls marked that wait for it.
pub(super) fn write(messages: &[Message], marks: &marks::Outgoing) -> Vec<Outgoing> {
    let placeholder = needs_placeholder(messages).then(|| Message::text(Role::System, PLACEHOLDER));
    let messages = placeholder.into_iter().chain(sent(messages).cloned());
    messages.map(|message| write_message(message, marks)).collect()
}

/// How many messages a client gets.
pub(super) fn count(messages: &[Message]) -> usize {
    usize::from(needs_placeholder(messages)) + sent(messages).count()
}

fn sent(messages: &[Message]) -> impl Iterator<Item = &Message> {
    messages.iter().filter(|message| message.client_json.as_deref() != Some(UNSENT))
}

fn needs_placeholder(messages: &[Message]) -> bool {
    sent(messages).next().is_none_or(|first| first.role != Role::System)
}

fn write_message(mut message: Message, marks: &marks::Outgoing) -> Outgoing {
    match message.client_json.take().map(RawValue::from_string) {
        Some(Ok(json)) => Outgoing::Verbatim(json),
        Some(Err(_)) | None => Outgoing::Made(Box::new(make(message, marks))),
    }
}

fn make(message: Message, marks: &marks::Outgoing) -> Made {
    let token_count = tokens::of_message(&message);
    let reasoning_content = message.joined_thinking();
    let approval_grants = message.answers.as_ref().map(|(call, _)| marks.grants(call)).unwrap_or_default();
    let (tool_call_id, name) = match message.answers {
        Some((call, name)) => (Some(call.as_str().to_owned()), Some(name)),
        None => (None, None),
    };
    let mut content = Vec::new();
    let mut thinking_blocks = Vec::new();
    for part in message.parts {
        match part {
            Part::Text(text) => content.push(ContentPart::Text { text }),
            Part::Image(Image { url, detail, format }) => {
                content.push(ContentPart::ImageUrl { image_url: ImageUrl { url, detail, format } });
            }
            // The dialect has no word for it, and its clients cannot have sent it.
            Part::Document(_) => {}
            Part::Thinking(thinking) => thinking_blocks.extend(write_thinking(thinking)),
        }
    }
    Made {
        role: role_name(message.role),
        tool_call_id,
        name,
        content: write_content(content),
        tool_calls: message.tool_calls.into_iter().map(|call| write_call(call, marks)).collect(),
        reasoning_content,
        thinking_blocks,
        approval_grants,
        token_count,
    }
}

/// Text alone is a string, as all clients know it.
fn write_content(parts: Vec<ContentPart>) -> Option<OutgoingContent> {
    let mut joined = String::new();
    for part in &parts {
        match part {
            ContentPart::Text { text } => joined.push_str(text),
            ContentPart::ImageUrl { .. } | ContentPart::Unknown => {
                return Some(OutgoingContent::Parts(parts));
            }
        }
    }
    (!joined.is_empty()).then_some(OutgoingContent::Text(joined))
}

/// Thinking without a provider's mark is text for people only: no provider wants it back.
fn write_thinking(thinking: Thinking) -> Option<ThinkingBlock> {
    let Thinking { text, signature, redacted } = thinking;
    match (redacted, signature) {
        (Some(data), _) => Some(ThinkingBlock::RedactedThinking { data }),
        (None, Some(signature)) => {
            Some(ThinkingBlock::Thinking { thinking: text, signature: Some(signature) })
        }
        (None, None) => None,
    }
}

fn write_call(call: ToolCall, marks: &marks::Outgoing) -> OutgoingCall {
    let pending_frontend = marks.waits_for_client(&call);
    let approval_token = marks.tokens.get(&call.id).cloned();
    let function = OutgoingFunction { arguments: call.arguments, name: call.name };
    OutgoingCall {
        function,
        id: call.id.as_str().to_owned(),
        r#type: "function",
        pending_frontend,
        pending_approval: approval_token.is_some(),
        approval_token,
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
