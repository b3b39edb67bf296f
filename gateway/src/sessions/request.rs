//! The bodies of requests.

use std::collections::HashMap;

use domain::{Effort, Image};
use http::StatusCode;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use serde_json::{Map, Value};
use wire::{
    agent::ClientTool,
    session::{
        ContentPart, Controls, ExternalActor, ImageFilePart, ImagePart, Message, SessionSettings, ToolResult,
        content_part::Part,
    },
};

use super::{
    capabilities::{self, Capability},
    ids,
    problem::Problem,
};

/// Reads a body; an empty one has no fields.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let body = if body.iter().all(u8::is_ascii_whitespace) || body == b"null" { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| {
        let status = match error.classify() {
            serde_json::error::Category::Data => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, format!("Invalid request body: {error}"))
    })
}

/// What a session is to be, or to become: what is missing stays as it is.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SessionBody {
    pub(super) agent_id: Option<String>,
    pub(super) agent_name: Option<String>,
    pub(super) harness_id: Option<String>,
    pub(super) harness_name: Option<String>,
    pub(super) model_id: Option<String>,
    title: Option<String>,
    tags: Option<Vec<String>>,
    hints: Option<Map<String, Value>>,
    metadata: Option<Map<String, Value>>,
    tools: Option<Vec<Tool>>,
    system_prompt: Option<String>,
    max_iterations: Option<u32>,
    locale: Option<String>,
    capabilities: Option<Vec<Capability>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
}

impl SessionBody {
    /// These settings with what the body says. The model is resolved before.
    pub(super) fn over(
        self,
        before: SessionSettings,
        model: Option<String>,
    ) -> Result<SessionSettings, Problem> {
        let json = |map: Map<String, Value>| Value::Object(map).to_string();
        let tools = match self.tools {
            Some(tools) => tools.into_iter().map(Tool::wire).collect::<Result<_, _>>()?,
            None => before.tools,
        };
        Ok(SessionSettings {
            title: self.title.unwrap_or(before.title),
            harness_id: before.harness_id,
            agent_id: before.agent_id,
            model: model.unwrap_or(before.model),
            tags: self.tags.unwrap_or(before.tags),
            hints_json: self.hints.map(json).unwrap_or(before.hints_json),
            tools,
            system_prompt: self.system_prompt.unwrap_or(before.system_prompt),
            max_iterations: self.max_iterations.unwrap_or(before.max_iterations),
            locale: self.locale.unwrap_or(before.locale),
            metadata_json: self.metadata.map(json).unwrap_or(before.metadata_json),
            subagents: match self.capabilities {
                Some(capabilities) => capabilities::subagents(capabilities)?,
                None => before.subagents,
            },
        })
    }
}

impl Tool {
    pub(super) fn wire(self) -> Result<ClientTool, Problem> {
        if self.kind.as_deref().is_some_and(|kind| kind != "client_side") {
            return Err(Problem::bad(format!("tools: `{}` is not of the type client_side", self.name)));
        }
        let parameters_json = self.parameters.map(|schema| Value::Object(schema).to_string());
        Ok(ClientTool {
            name: self.name,
            description: self.description,
            parameters_json: parameters_json.unwrap_or_default(),
            noop_response: None,
        })
    }
}

/// A message that is posted.
#[derive(Debug, Deserialize)]
pub(super) struct MessageBody {
    message: Said,
    controls: Option<ControlsBody>,
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    tags: Vec<String>,
    external_actor: Option<Actor>,
    pub(super) client_message_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: Option<String>,
    content: Vec<Piece>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    Text {
        text: String,
    },
    Image {
        url: Option<String>,
        base64: Option<String>,
        media_type: Option<String>,
    },
    ImageFile {
        image_id: String,
        filename: Option<String>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct ControlsBody {
    model_id: Option<String>,
    reasoning: Option<Reasoning>,
    locale: Option<String>,
    error_disclosure: Option<Disclosure>,
    hints: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct Reasoning {
    #[serde(default, deserialize_with = "effort")]
    effort: Option<Effort>,
}

fn effort<'a, D: Deserializer<'a>>(field: D) -> Result<Option<Effort>, D::Error> {
    let Some(name) = Option::<String>::deserialize(field)? else { return Ok(None) };
    let effort = if name == "max" { Some(Effort::Highest) } else { Effort::named(&name) };
    effort.map(Some).ok_or_else(|| Error::custom(format!("effort: there is none of the name `{name}`")))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Disclosure {
    Generic,
    Standard,
    Detailed,
}

#[derive(Debug, Deserialize)]
struct Actor {
    actor_id: String,
    source: String,
    actor_name: Option<String>,
    #[serde(default)]
    metadata: HashMap<String, String>,
}

impl MessageBody {
    /// The model that the message asks for.
    pub(super) fn model(&self) -> Option<&str> {
        self.controls.as_ref()?.model_id.as_deref()
    }

    /// The message. The model is resolved before.
    pub(super) fn message(self, model: Option<String>) -> Result<Message, Problem> {
        if self.message.role.is_some_and(|role| role != "user") {
            return Err(Problem::bad("only user messages can be created"));
        }
        let content = self.message.content.into_iter().map(Piece::wire).collect::<Result<Vec<_>, _>>()?;
        let says = |part: &ContentPart| match &part.part {
            Some(Part::Text(text)) => !text.trim().is_empty(),
            Some(Part::Image(_) | Part::ImageFile(_)) => true,
            Some(Part::ToolCall(_) | Part::ToolResult(_)) | None => false,
        };
        if !content.iter().any(says) {
            return Err(Problem::bad("message has no text"));
        }
        Ok(Message {
            content,
            controls: self.controls.map(|controls| controls.wire(model)),
            metadata_json: self.metadata.map(|metadata| Value::Object(metadata).to_string()),
            external_actor: self.external_actor.map(Actor::wire),
            tags: self.tags,
            ..Message::default()
        })
    }
}

impl Piece {
    fn wire(self) -> Result<ContentPart, Problem> {
        let part = match self {
            Self::Text { text } => Part::Text(text),
            Self::Image { url, base64, media_type } => {
                let kind = media_type.as_deref().unwrap_or("image/png");
                let inline = base64.as_ref().map(|data| format!("data:{kind};base64,{data}"));
                let address = url.clone().or(inline).unwrap_or_default();
                let image = Image { url: address, detail: None, format: media_type.clone() };
                image.check().map_err(|error| Problem::bad(format!("message.content: {error}")))?;
                Part::Image(ImagePart { url, base64, media_type })
            }
            Self::ImageFile { image_id, filename } => {
                if !ids::is("img_", &image_id) {
                    let detail = "message.content: an image_id is `img_` and 32 lower-case hex digits";
                    return Err(Problem::bad(detail));
                }
                Part::ImageFile(ImageFilePart { image_id, filename })
            }
            Self::Other => {
                return Err(Problem::bad(
                    "message.content: only parts of the types text, image and image_file can be sent",
                ));
            }
        };
        Ok(ContentPart { part: Some(part) })
    }
}

impl ControlsBody {
    fn wire(self, model: Option<String>) -> Controls {
        let disclosure = self.error_disclosure.map(|disclosure| match disclosure {
            Disclosure::Generic => "generic",
            Disclosure::Standard => "standard",
            Disclosure::Detailed => "detailed",
        });
        Controls {
            model_id: model,
            reasoning_effort: self
                .reasoning
                .and_then(|reasoning| reasoning.effort)
                .map(|effort| effort.name().to_owned()),
            locale: self.locale,
            error_disclosure: disclosure.map(str::to_owned),
            hints_json: self.hints.map(|hints| Value::Object(hints).to_string()),
        }
    }
}

impl Actor {
    fn wire(self) -> ExternalActor {
        let Self { actor_id, source, actor_name, metadata } = self;
        ExternalActor { actor_id, source, actor_name, metadata }
    }
}

/// Results of the client's tools.
#[derive(Debug, Deserialize)]
pub(super) struct ResultsBody {
    tool_results: Vec<ResultBody>,
}

#[derive(Debug, Deserialize)]
struct ResultBody {
    tool_call_id: String,
    result: Option<Value>,
    error: Option<String>,
}

impl ResultsBody {
    pub(super) fn results(self) -> Result<Vec<ToolResult>, Problem> {
        if self.tool_results.is_empty() {
            return Err(Problem::bad("tool_results must not be empty"));
        }
        let results = self.tool_results.into_iter().map(|result| ToolResult {
            tool_call_id: result.tool_call_id,
            result_json: result.result.map(|value| value.to_string()).unwrap_or_default(),
            error: result.error.unwrap_or_default(),
        });
        Ok(results.collect())
    }
}

/// What a person decided about calls that wait.
#[derive(Debug, Deserialize)]
pub(super) struct DecisionsBody {
    pub(super) decisions: Vec<DecisionBody>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DecisionBody {
    pub(super) tool_call_id: String,
    pub(super) decision: Word,
    pub(super) note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    Allow,
    AllowAlways,
    Reject,
    RejectAlways,
}

impl Word {
    /// What came of it. A person can lift a question for good, and no person keeps the others from being asked: what is
    /// always rejected is the operator's to say.
    pub(super) fn outcome(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways => "allow_always",
            Self::Reject | Self::RejectAlways => "reject",
        }
    }
}
