//! What an account keeps, and every way to it: sessions, agents and images, over HTTP and gRPC.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tonic::{Request, Status, transport::Channel};
use wire::{
    agent::Caller,
    session::{
        AgentSettings, CancelTurnRequest, ContentPart, DecideToolCallsRequest, DeleteAgentRequest,
        DeleteSessionRequest, GetAgentRequest, GetImageRequest, GetSessionRequest, ListAgentsRequest,
        ListEventsRequest, ListMessagesRequest, ListSessionsRequest, Message, PostMessageRequest,
        SessionSettings, SubmitToolResultsRequest, UpdateAgentRequest, UpdateSessionRequest, WatchRequest,
        content_part::Part, get_agent_request::Which, sessions_client::SessionsClient,
    },
};

use crate::world::World;

/// More than any refusal may take.
const PATIENCE: Duration = Duration::from_secs(60);
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";

/// Something that an account keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Session,
    Agent,
    Image,
}

/// A method of the sessions' service that names it, or lists it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rpc {
    GetSession,
    ListSessions,
    UpdateSession,
    DeleteSession,
    PostMessage,
    ListMessages,
    ListEvents,
    Watch,
    CancelTurn,
    SubmitToolResults,
    DecideToolCalls,
    GetAgent,
    ListAgents,
    UpdateAgent,
    DeleteAgent,
    GetImage,
}

/// All of them, with what they are about.
pub(crate) const RPCS: [(Kind, Rpc); 16] = [
    (Kind::Session, Rpc::GetSession),
    (Kind::Session, Rpc::ListSessions),
    (Kind::Session, Rpc::UpdateSession),
    (Kind::Session, Rpc::DeleteSession),
    (Kind::Session, Rpc::PostMessage),
    (Kind::Session, Rpc::ListMessages),
    (Kind::Session, Rpc::ListEvents),
    (Kind::Session, Rpc::Watch),
    (Kind::Session, Rpc::CancelTurn),
    (Kind::Session, Rpc::SubmitToolResults),
    (Kind::Session, Rpc::DecideToolCalls),
    (Kind::Agent, Rpc::GetAgent),
    (Kind::Agent, Rpc::ListAgents),
    (Kind::Agent, Rpc::UpdateAgent),
    (Kind::Agent, Rpc::DeleteAgent),
    (Kind::Image, Rpc::GetImage),
];

/// The ways to agents and images over HTTP; sessions have a list of their own.
pub(crate) fn over_http(kind: Kind, id: &str) -> Vec<(Method, String, Value)> {
    let ways = match kind {
        Kind::Session => Vec::new(),
        Kind::Agent => vec![
            (Method::GET, format!("/agents/{id}"), Value::Null),
            (Method::PATCH, format!("/agents/{id}"), json!({ "name": "mine" })),
            (Method::DELETE, format!("/agents/{id}"), Value::Null),
            (Method::POST, "/sessions".to_owned(), json!({ "agent_id": id })),
        ],
        Kind::Image => vec![(Method::GET, format!("/images/{id}"), Value::Null)],
    };
    let both = |(method, path, body): (Method, String, Value)| {
        ["/v1", "/api/v1"].map(|prefix| (method.clone(), format!("{prefix}{path}"), body.clone()))
    };
    ways.into_iter().flat_map(both).collect()
}

/// What `acme` keeps.
pub(crate) async fn kept(world: &World) -> [(Kind, String); 3] {
    let made = async |path: &str, body: Value| {
        let answer = world.send(Method::POST, path, &world.victim, &body, &[]).await;
        let made: Value = answer.json().await.unwrap();
        made["id"].as_str().unwrap_or_else(|| panic!("{path}: {made}")).to_owned()
    };
    let session = made("/v1/sessions", json!({})).await;
    let agent = made("/v1/agents", json!({ "name": "ours", "system_prompt": "Be brief." })).await;
    let url = world.sleuth.url("/v1/images?filename=graph.png").unwrap();
    let sent =
        reqwest::Client::new().post(url).bearer_auth(&world.victim).header("content-type", "image/png");
    let image: Value = sent.body(PICTURE).send().await.unwrap().json().await.unwrap();
    let image = image["id"].as_str().unwrap_or_else(|| panic!("{image}")).to_owned();
    [(Kind::Session, session), (Kind::Agent, agent), (Kind::Image, image)]
}

/// An id like this one, of what there is not.
pub(crate) fn like(id: &str) -> String {
    let (rest, last) = id.split_at(id.len() - 1);
    format!("{rest}{}", if last == "0" { "1" } else { "0" })
}

/// Calls a method about something: what was learnt or done, or why not.
pub(crate) async fn call(world: &World, rpc: Rpc, key: &str, id: &str) -> Result<String, Status> {
    let channel = Channel::from_shared(world.sleuth.grpc().unwrap()).unwrap().connect().await.unwrap();
    let bearer = format!("Bearer {key}");
    let present = move |mut request: Request<()>| {
        if bearer.len() > "Bearer ".len() {
            request.metadata_mut().insert("authorization", bearer.parse().unwrap());
        }
        Ok::<_, Status>(request)
    };
    let mut sessions = SessionsClient::with_interceptor(channel, present);
    // What a request says of its caller is not believed.
    let caller = Some(Caller { account: "acme".to_owned(), ..Caller::default() });
    let (session_id, agent_id) = (id.to_owned(), id.to_owned());
    let part = ContentPart { part: Some(Part::Text("hello FAKE_LLM{}".to_owned())) };
    let message = Some(Message { content: vec![part], ..Message::default() });
    let settings = Some(SessionSettings::default());
    let answered = async {
        Ok(match rpc {
            Rpc::GetSession => text(sessions.get_session(GetSessionRequest { caller, session_id }).await?),
            Rpc::ListSessions => text(
                sessions
                    .list_sessions(ListSessionsRequest { caller, limit: 100, ..Default::default() })
                    .await?,
            ),
            Rpc::UpdateSession => text(
                sessions
                    .update_session(UpdateSessionRequest { caller, session_id, settings, before: None })
                    .await?,
            ),
            Rpc::DeleteSession => {
                text(sessions.delete_session(DeleteSessionRequest { caller, session_id }).await?)
            }
            Rpc::PostMessage => {
                let said = PostMessageRequest { caller, session_id, message, ..Default::default() };
                text(sessions.post_message(said).await?)
            }
            Rpc::ListMessages => {
                let asked = ListMessagesRequest { caller, session_id, ..Default::default() };
                text(sessions.list_messages(asked).await?)
            }
            Rpc::ListEvents => {
                let asked = ListEventsRequest { caller, session_id, ..Default::default() };
                text(sessions.list_events(asked).await?)
            }
            Rpc::Watch => {
                let asked = WatchRequest { caller, session_id, ..Default::default() };
                sessions.watch(asked).await.map(|_| String::new())?
            }
            Rpc::CancelTurn => {
                let asked = CancelTurnRequest { caller, session_id, ..Default::default() };
                text(sessions.cancel_turn(asked).await?)
            }
            Rpc::SubmitToolResults => {
                let sent = SubmitToolResultsRequest { caller, session_id, results: Vec::new() };
                text(sessions.submit_tool_results(sent).await?)
            }
            Rpc::DecideToolCalls => {
                let decided = DecideToolCallsRequest { caller, session_id, decisions: Vec::new() };
                text(sessions.decide_tool_calls(decided).await?)
            }
            Rpc::GetAgent => {
                text(sessions.get_agent(GetAgentRequest { caller, which: Some(Which::Id(agent_id)) }).await?)
            }
            Rpc::ListAgents => text(
                sessions.list_agents(ListAgentsRequest { caller, limit: 100, ..Default::default() }).await?,
            ),
            Rpc::UpdateAgent => {
                let settings = Some(AgentSettings::default());
                text(
                    sessions
                        .update_agent(UpdateAgentRequest { caller, agent_id, settings, before: None })
                        .await?,
                )
            }
            Rpc::DeleteAgent => text(sessions.delete_agent(DeleteAgentRequest { caller, agent_id }).await?),
            Rpc::GetImage => {
                text(sessions.get_image(GetImageRequest { caller, image_id: id.to_owned() }).await?)
            }
        })
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("it is answered")
}

fn text<T: std::fmt::Debug>(answer: tonic::Response<T>) -> String {
    format!("{:?}", answer.into_inner())
}
