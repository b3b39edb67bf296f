//! The conversation: messages in the dialect's form, or in OpenAI's.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{CallId, Document, Image, Message, Part, Role, ToolCall};
use serde::Deserialize;
use serde_json::Value;
use wire::agent;

use super::refusal::Refusal;

/// What is asked, and what was said before.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// The text of the last message, if a user said it.
    pub(super) question: String,
    pub(super) images: Vec<agent::Image>,
    pub(super) documents: Vec<agent::Document>,
    pub(super) history: Vec<agent::Message>,
}

#[derive(Deserialize)]
struct Given {
    role: GivenRole,
    content: Option<Content>,
    tool_calls: Option<Vec<Call>>,
    tool_call_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum GivenRole {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<GivenPart>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum GivenPart {
    Text { text: String },
    Image { media_type: String, data: String },
    Document { media_type: String, data: String },
}

/// A call, flat or in OpenAI's nested form.
#[derive(Deserialize)]
#[serde(untagged)]
enum Call {
    Nested { id: String, function: Function },
    Flat { id: String, name: String, arguments: Option<Value> },
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Option<Value>,
}

/// Reads messages. What none of them can be is refused with its place.
pub(super) fn read(given: Vec<Value>) -> Result<Conversation, Refusal> {
    let mut history = Vec::with_capacity(given.len());
    let mut tools = HashMap::new();
    for (at, value) in given.into_iter().enumerate() {
        let message =
            message(value, &mut tools).map_err(|why| Refusal::bad(&format!("messages[{at}]: {why}")))?;
        history.push(message);
    }
    let mut conversation = Conversation::default();
    // A question is more than a message: it gets what belongs to questions along with it.
    if let Some(last) =
        history.pop_if(|last| last.role == Role::User && !last.joined_text().trim().is_empty())
    {
        conversation.question = last.joined_text();
        for part in last.parts {
            match part {
                Part::Image(image) => conversation.images.push(image.into()),
                Part::Document(document) => conversation.documents.push(document.into()),
                Part::Text(_) | Part::Thinking(_) => {}
            }
        }
    }
    conversation.history = history.into_iter().map(Into::into).collect();
    Ok(conversation)
}

fn message(value: Value, tools: &mut HashMap<CallId, String>) -> Result<Message, String> {
    let given: Given = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let parts = match given.content {
        None => Vec::new(),
        Some(Content::Text(text)) => vec![Part::Text(text)],
        Some(Content::Parts(parts)) => parts.into_iter().map(part).collect::<Result<_, _>>()?,
    };
    let role = match given.role {
        GivenRole::System => Role::System,
        GivenRole::User => Role::User,
        GivenRole::Assistant => Role::Assistant,
        GivenRole::Tool => Role::Tool,
    };
    let mut message = Message::new(role, parts);
    if role == Role::Assistant {
        message.tool_calls = given.tool_calls.unwrap_or_default().into_iter().map(call).collect();
        tools.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
    }
    if role == Role::Tool {
        let id = CallId::new(raw_id(&given.tool_call_id.ok_or("a tool's message needs tool_call_id")?));
        let tool = tools.get(&id).ok_or("no call before it has this tool_call_id")?;
        message.answers = Some((id, tool.clone()));
    }
    Ok(message)
}

fn part(given: GivenPart) -> Result<Part, String> {
    match given {
        GivenPart::Text { text } => Ok(Part::Text(text)),
        GivenPart::Image { media_type, data } => {
            let image = Image { url: format!("data:{media_type};base64,{data}"), ..Image::default() };
            image.check().map_err(|bad| bad.to_string())?;
            Ok(Part::Image(image))
        }
        GivenPart::Document { media_type, data } => document(&media_type, data),
    }
}

/// A document: as text, which every model reads, where it is one.
fn document(media_type: &str, data: String) -> Result<Part, String> {
    let media = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = media.strip_prefix("application/").unwrap_or_default();
    const TEXTS: [&str; 8] = ["json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-sh", "sql"];
    let is_text = media.starts_with("text/")
        || TEXTS.contains(&subtype)
        || ["+json", "+xml", "+yaml"].iter().any(|suffix| subtype.ends_with(suffix));
    if !is_text {
        let document = Document { media_type: media, data };
        return document.check().map(|()| Part::Document(document)).map_err(|bad| bad.to_string());
    }
    let bytes = STANDARD.decode(data).map_err(|_| "the document's data is not base64")?;
    let text = String::from_utf8(bytes).map_err(|_| "the document is not UTF-8")?;
    Ok(Part::Text(format!("\n\n<document type=\"{media}\">\n{text}\n</document>\n")))
}

fn call(given: Call) -> ToolCall {
    let (id, name, arguments) = match given {
        Call::Nested { id, function } => (id, function.name, function.arguments),
        Call::Flat { id, name, arguments } => (id, name, arguments),
    };
    let arguments = match arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        // OpenAI's arguments are JSON as text.
        Some(Value::String(text)) => {
            serde_json::from_str::<Value>(&text).map_or(text, |arguments| arguments.to_string())
        }
        Some(arguments) => arguments.to_string(),
    };
    ToolCall { id: CallId::new(raw_id(&id)), name, arguments }
}

/// The model's own id of a call: clients see it behind that of the run.
fn raw_id(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, raw)| raw)
}
