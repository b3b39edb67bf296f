//! Agents: the one that is built in, and those that an account defines.

use axum::{
    Json,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use wire::session::{Agent, AgentSettings, CreateAgentRequest, get_agent_request::Which};

use super::{
    CHANGES, Sessions, capabilities,
    capabilities::Capability,
    changed, data, ids, last,
    object::Object,
    objects::{self, NAME},
    problem::Problem,
    query::Query,
    request::{self, Tool},
    too_often,
};
use crate::{body, resume::idempotency_key};

/// The longest name.
const LONGEST: usize = 128;

/// What an agent is to be, or to become: what is missing stays as it is.
#[derive(Debug, Deserialize)]
struct AgentBody {
    name: Option<String>,
    display_name: Option<String>,
    description: Option<String>,
    system_prompt: Option<String>,
    #[serde(alias = "model_id")]
    default_model_id: Option<String>,
    harness_id: Option<String>,
    harness_name: Option<String>,
    tools: Option<Vec<Tool>>,
    max_iterations: Option<u32>,
    tags: Option<Vec<String>>,
    metadata: Option<Map<String, Value>>,
    capabilities: Option<Vec<Capability>>,
}

impl AgentBody {
    fn over(self, before: AgentSettings, model: Option<String>) -> Result<AgentSettings, Problem> {
        let name = self.name.unwrap_or(before.name);
        if name.trim().is_empty() || name.len() > LONGEST || name == NAME {
            return Err(Problem::bad(format!(
                "name: it is missing, longer than {LONGEST} bytes, or the built-in agent's"
            )));
        }
        let json = |map: Map<String, Value>| Value::Object(map).to_string();
        Ok(AgentSettings {
            name,
            display_name: self.display_name.unwrap_or(before.display_name),
            description: self.description.unwrap_or(before.description),
            system_prompt: self.system_prompt.unwrap_or(before.system_prompt),
            model: model.unwrap_or(before.model),
            tools: match self.tools {
                Some(tools) => tools.into_iter().map(Tool::wire).collect::<Result<_, _>>()?,
                None => before.tools,
            },
            max_iterations: self.max_iterations.unwrap_or(before.max_iterations),
            tags: self.tags.unwrap_or(before.tags),
            metadata_json: self.metadata.map(json).unwrap_or(before.metadata_json),
            subagents: match self.capabilities {
                Some(capabilities) => capabilities::subagents(capabilities)?,
                None => before.subagents,
            },
        })
    }
}

/// `POST /v1/agents`
pub(super) async fn create(sessions: Sessions, request: Request) -> Result<Response, Problem> {
    let (path, key) = (request.uri().path().to_owned(), idempotency_key(request.headers())?);
    let body = body::read_json(request, &sessions.shared).await?;
    let asked: AgentBody = request::read(&body)?;
    super::only_harness(asked.harness_id.as_ref().or(asked.harness_name.as_ref()))?;
    let model = sessions.model(asked.default_model_id.as_deref()).await?;
    let asked = CreateAgentRequest {
        caller: sessions.caller(),
        settings: Some(asked.over(AgentSettings::default(), model)?),
        idempotency_key: key.map(|key| format!("{path} {key}")).unwrap_or_default(),
        request_digest: grants::sha256(&*body),
    };
    let created = sessions.upstream().create_agent(asked).await?;
    Ok((StatusCode::CREATED, Json(json(created))).into_response())
}

/// `GET /v1/agents`: the built-in one comes first.
pub(super) async fn list(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let query = Query::parse(request.uri().query());
    let after = query.text("after").unwrap_or_default().to_owned();
    let built_in = after.is_empty() || after == wire::AGENT_ID;
    let first = after.is_empty().then(objects::agent);
    let after = if built_in { String::new() } else { after };
    let listed = sessions.upstream().agents(sessions.caller(), query.limit()?, after).await?;
    Ok(data(first.into_iter().chain(listed.into_iter().map(json)).collect()))
}

/// `GET /v1/agents/{id}`: by id or name.
pub(super) async fn inspect(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let asked = last(&request);
    if is_built_in(&asked) {
        return Ok(Json(objects::agent()));
    }
    Ok(Json(json(sessions.agent(&asked).await?)))
}

/// `PATCH /v1/agents/{id}`
pub(super) async fn update(sessions: Sessions, request: Request) -> Result<Json<Value>, Problem> {
    let id = own(&request)?;
    let body = body::read_json(request, &sessions.shared).await?;
    let model = sessions.model(request::read::<AgentBody>(&body)?.default_model_id.as_deref()).await?;
    for _ in 0..CHANGES {
        let Agent { id, settings, .. } = sessions.agent(&id).await?;
        let before = settings.unwrap_or_default();
        let settings = request::read::<AgentBody>(&body)?.over(before.clone(), model.clone())?;
        let updated = sessions.upstream().update_agent(sessions.caller(), id, settings, before).await;
        if let Some(agent) = changed(updated)? {
            return Ok(Json(json(agent)));
        }
    }
    Err(too_often())
}

/// `DELETE /v1/agents/{id}`
pub(super) async fn delete(sessions: Sessions, request: Request) -> Result<StatusCode, Problem> {
    let id = sessions.agent(&own(&request)?).await?.id;
    sessions.upstream().delete_agent(sessions.caller(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An agent that may change.
fn own(request: &Request) -> Result<String, Problem> {
    let id = last(request);
    match is_built_in(&id) {
        true => Err(Problem::new(StatusCode::FORBIDDEN, "the built-in agent stays as it is")),
        false => Ok(id),
    }
}

fn is_built_in(asked: &str) -> bool {
    asked == wire::AGENT_ID || asked == NAME
}

impl Sessions {
    async fn agent(&self, asked: &str) -> Result<Agent, Problem> {
        let which = match asked.starts_with("agent_") {
            true if !ids::is("agent_", asked) => {
                return Err(Problem::bad("Invalid agent ID: it is `agent_` and 32 lower-case hex digits"));
            }
            true => Which::Id(asked.to_owned()),
            false => Which::Name(asked.to_owned()),
        };
        Ok(self.upstream().agent_of(self.caller(), which).await?)
    }

    /// The id of the agent that a new session names.
    pub(super) async fn agent_id(&self, asked: Option<&String>) -> Result<String, Problem> {
        match asked {
            Some(asked) if !is_built_in(asked) => Ok(self.agent(asked).await?.id),
            Some(_) | None => Ok(wire::AGENT_ID.to_owned()),
        }
    }
}

fn json(agent: Agent) -> Value {
    let settings = agent.settings.unwrap_or_default();
    let time = |time: Option<prost_types::Timestamp>| time.map(|time| time.to_string());
    let model = Some(settings.model).filter(|model| !model.is_empty());
    Object::default()
        .with("id", agent.id)
        .with("name", settings.name)
        .text("display_name", settings.display_name)
        .text("description", settings.description)
        .with("system_prompt", settings.system_prompt)
        .with("status", "active")
        .with("built_in", false)
        .with("harness_id", wire::HARNESS_ID)
        .may("default_model_id", model.map(|model| ids::model(&model)))
        .may("max_iterations", Some(settings.max_iterations).filter(|most| *most > 0))
        .with("capabilities", capabilities::list(settings.subagents))
        .list("tools", settings.tools, objects::tool)
        .with("tags", settings.tags)
        .json("metadata", Some(settings.metadata_json))
        .with("created_at", time(agent.created_at))
        .with("updated_at", time(agent.updated_at))
        .into()
}
