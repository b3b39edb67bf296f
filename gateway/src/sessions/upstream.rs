//! The agent's sessions, as the gateway calls them.

use std::time::Duration;

use tonic::{Status, Streaming};
use wire::{
    Transport,
    agent::Caller,
    session::{
        Agent, AgentSettings, CancelTurnRequest, CreateAgentRequest, CreateSessionRequest, Cursor,
        DecideToolCallsRequest, DeleteAgentRequest, DeleteSessionRequest, Event, Filter, GetAgentRequest,
        GetImageRequest, GetSessionRequest, Image, ListAgentsRequest, ListEventsRequest, ListEventsResponse,
        ListMessagesRequest, ListMessagesResponse, ListSessionsRequest, PostMessageRequest,
        PostMessageResponse, PutImageRequest, Session, SessionSettings, SubmitToolResultsRequest,
        ToolDecision, ToolResult, UpdateAgentRequest, UpdateSessionRequest, WatchRequest,
        get_agent_request::Which, sessions_client::SessionsClient,
    },
};

use crate::upstream::{DEADLINE, MAX_MESSAGE, request, within};

/// The sessions of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    client: SessionsClient<Transport>,
}

impl Sessions {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { client: SessionsClient::new(transport).max_decoding_message_size(MAX_MESSAGE) }
    }

    fn agent(&self) -> SessionsClient<Transport> {
        self.client.clone()
    }

    pub(super) async fn create(&self, asked: CreateSessionRequest) -> Result<Session, Status> {
        let created = within(self.agent().create_session(request(asked, DEADLINE))).await?;
        whole(created.into_inner().session)
    }

    pub(super) async fn get(&self, caller: Option<Caller>, session_id: &str) -> Result<Session, Status> {
        let asked = GetSessionRequest { caller, session_id: session_id.to_owned() };
        let got = within(self.agent().get_session(request(asked, DEADLINE))).await?;
        whole(got.into_inner().session)
    }

    pub(super) async fn list(
        &self,
        caller: Option<Caller>,
        limit: u32,
        after_session_id: String,
    ) -> Result<Vec<Session>, Status> {
        let asked = ListSessionsRequest { caller, limit, after_session_id };
        let listed = within(self.agent().list_sessions(request(asked, DEADLINE))).await?;
        Ok(listed.into_inner().sessions)
    }

    /// ABORTED if it is no longer what it was before.
    pub(super) async fn update(
        &self,
        caller: Option<Caller>,
        session_id: &str,
        settings: SessionSettings,
        before: SessionSettings,
    ) -> Result<Session, Status> {
        let (session_id, settings, before) = (session_id.to_owned(), Some(settings), Some(before));
        let asked = UpdateSessionRequest { caller, session_id, settings, before };
        let updated = within(self.agent().update_session(request(asked, DEADLINE))).await?;
        whole(updated.into_inner().session)
    }

    pub(super) async fn delete(&self, caller: Option<Caller>, session_id: &str) -> Result<(), Status> {
        let asked = DeleteSessionRequest { caller, session_id: session_id.to_owned() };
        within(self.agent().delete_session(request(asked, DEADLINE))).await.map(drop)
    }

    pub(super) async fn post(&self, asked: PostMessageRequest) -> Result<PostMessageResponse, Status> {
        let posted = within(self.agent().post_message(request(asked, DEADLINE))).await?;
        Ok(posted.into_inner())
    }

    pub(super) async fn messages(
        &self,
        caller: Option<Caller>,
        session_id: &str,
        limit: u32,
        after_sequence: u64,
    ) -> Result<ListMessagesResponse, Status> {
        let asked = ListMessagesRequest { caller, session_id: session_id.to_owned(), limit, after_sequence };
        Ok(within(self.agent().list_messages(request(asked, DEADLINE))).await?.into_inner())
    }

    pub(super) async fn events(&self, asked: ListEventsRequest) -> Result<ListEventsResponse, Status> {
        Ok(within(self.agent().list_events(request(asked, DEADLINE))).await?.into_inner())
    }

    /// The events after a place, or from now on, for a time.
    pub(super) async fn watch(
        &self,
        caller: Option<Caller>,
        session_id: &str,
        cursor: Option<Cursor>,
        filter: Option<Filter>,
        time: Duration,
    ) -> Result<Streaming<Event>, Status> {
        let asked = WatchRequest { caller, session_id: session_id.to_owned(), cursor, filter };
        Ok(within(self.agent().watch(request(asked, time + DEADLINE))).await?.into_inner())
    }

    /// Stops the turn that goes on. False if none did.
    pub(super) async fn cancel(&self, caller: Option<Caller>, session_id: &str) -> Result<bool, Status> {
        let (session_id, reason) = (session_id.to_owned(), String::new());
        let asked = CancelTurnRequest { caller, session_id, reason };
        Ok(within(self.agent().cancel_turn(request(asked, DEADLINE))).await?.into_inner().cancelled)
    }

    pub(super) async fn results(
        &self,
        caller: Option<Caller>,
        session_id: &str,
        results: Vec<ToolResult>,
    ) -> Result<u32, Status> {
        let asked = SubmitToolResultsRequest { caller, session_id: session_id.to_owned(), results };
        let taken = within(self.agent().submit_tool_results(request(asked, DEADLINE))).await?;
        Ok(taken.into_inner().accepted)
    }

    pub(super) async fn decisions(
        &self,
        caller: Option<Caller>,
        session_id: &str,
        decisions: Vec<ToolDecision>,
    ) -> Result<u32, Status> {
        let asked = DecideToolCallsRequest { caller, session_id: session_id.to_owned(), decisions };
        let taken = within(self.agent().decide_tool_calls(request(asked, DEADLINE))).await?;
        Ok(taken.into_inner().accepted)
    }

    pub(super) async fn create_agent(&self, asked: CreateAgentRequest) -> Result<Agent, Status> {
        let created = within(self.agent().create_agent(request(asked, DEADLINE))).await?;
        whole(created.into_inner().agent)
    }

    pub(super) async fn agent_of(&self, caller: Option<Caller>, which: Which) -> Result<Agent, Status> {
        let asked = GetAgentRequest { caller, which: Some(which) };
        whole(within(self.agent().get_agent(request(asked, DEADLINE))).await?.into_inner().agent)
    }

    pub(super) async fn agents(
        &self,
        caller: Option<Caller>,
        limit: u32,
        after_agent_id: String,
    ) -> Result<Vec<Agent>, Status> {
        let asked = ListAgentsRequest { caller, limit, after_agent_id };
        Ok(within(self.agent().list_agents(request(asked, DEADLINE))).await?.into_inner().agents)
    }

    pub(super) async fn update_agent(
        &self,
        caller: Option<Caller>,
        agent_id: String,
        settings: AgentSettings,
        before: AgentSettings,
    ) -> Result<Agent, Status> {
        let (settings, before) = (Some(settings), Some(before));
        let asked = UpdateAgentRequest { caller, agent_id, settings, before };
        whole(within(self.agent().update_agent(request(asked, DEADLINE))).await?.into_inner().agent)
    }

    pub(super) async fn delete_agent(&self, caller: Option<Caller>, agent_id: String) -> Result<(), Status> {
        let asked = DeleteAgentRequest { caller, agent_id };
        within(self.agent().delete_agent(request(asked, DEADLINE))).await.map(drop)
    }

    pub(super) async fn put_image(&self, asked: PutImageRequest) -> Result<Image, Status> {
        whole(within(self.agent().put_image(request(asked, DEADLINE))).await?.into_inner().image)
    }

    pub(super) async fn image(
        &self,
        caller: Option<Caller>,
        image_id: String,
    ) -> Result<(Image, Vec<u8>), Status> {
        let asked = GetImageRequest { caller, image_id };
        let got = within(self.agent().get_image(request(asked, DEADLINE))).await?.into_inner();
        Ok((whole(got.image)?, got.content))
    }
}

fn whole<T>(object: Option<T>) -> Result<T, Status> {
    object.ok_or_else(|| Status::internal("an answer without content"))
}
