//! The `sleuth.session.v1` service: thin handlers over the sessions.

use std::{num::NonZeroUsize, sync::Arc};

use futures_util::{TryStreamExt as _, stream::BoxStream};
use tonic::{Request, Response, Status};
use wire::session::{
    CancelTurnRequest, CancelTurnResponse, CreateAgentRequest, CreateAgentResponse, CreateSessionRequest,
    CreateSessionResponse, Cursor, DecideToolCallsRequest, DecideToolCallsResponse, DeleteAgentRequest,
    DeleteAgentResponse, DeleteSessionRequest, DeleteSessionResponse, Details, Event, GetAgentRequest,
    GetAgentResponse, GetImageRequest, GetImageResponse, GetSessionRequest, GetSessionResponse, Image,
    ListAgentsRequest, ListAgentsResponse, ListEventsRequest, ListEventsResponse, ListMessagesRequest,
    ListMessagesResponse, ListSessionsRequest, ListSessionsResponse, PostMessageRequest, PostMessageResponse,
    PutImageRequest, PutImageResponse, SubmitToolResultsRequest, SubmitToolResultsResponse,
    UpdateAgentRequest, UpdateAgentResponse, UpdateSessionRequest, UpdateSessionResponse, WatchRequest,
    cursor, get_agent_request::Which, sessions_server,
};

use wire::agent::Caller;

use super::{account, ask::idempotency, clusters, principal, received, span, unavailable};
use crate::sessions::{
    Error, Refused, Sessions,
    read::{Range, Unreadable},
    wanted::{NoFilter, Wanted},
};

/// Events, and sessions, that one answer has at most.
const MOST: u32 = 1000;

/// The sessions' gRPC service.
pub struct SessionService {
    sessions: Arc<Sessions>,
}

impl std::fmt::Debug for SessionService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionService").finish_non_exhaustive()
    }
}

impl SessionService {
    pub(crate) fn new(sessions: Arc<Sessions>) -> Self {
        Self { sessions }
    }

    /// Refuses whoever may not see the session, or have something done in it.
    async fn permit(&self, session: &str, caller: Option<&Caller>) -> Result<(), Status> {
        match self.sessions.stays_within(session, account(caller), clusters(caller)).await? {
            true => Ok(()),
            false => {
                Err(Status::permission_denied("the session reaches clusters that the API key is not for"))
            }
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Unknown(..) => Self::not_found(error.to_string()),
            Error::OtherRequest => Self::already_exists(error.to_string()),
            Error::Changed => Self::aborted(error.to_string()),
            Error::Store(store::Error::UnknownLog(_)) => Self::not_found("Session not found"),
            Error::Store(store::Error::BadName(why)) => Self::invalid_argument(why),
            Error::Store(error) => unavailable(&error),
        }
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let text = refused.to_string();
        match refused {
            Refused::Session(error) => error.into(),
            Refused::OtherMessage => Self::already_exists(text),
            Refused::NotWaiting => Self::failed_precondition(text),
            Refused::NoSuchCall(_) => Self::invalid_argument(text),
            Refused::NotHeard => Self::unavailable(text),
        }
    }
}

impl From<Unreadable> for Status {
    fn from(unreadable: Unreadable) -> Self {
        let text = unreadable.to_string();
        match unreadable {
            Unreadable::Session(error) => error.into(),
            Unreadable::Cursor(_) => Self::invalid_argument(text),
        }
    }
}

impl From<NoFilter> for Status {
    fn from(error: NoFilter) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

fn limit(asked: u32, usual: u32) -> NonZeroUsize {
    let limit = if asked == 0 { usual } else { asked.min(MOST) };
    NonZeroUsize::new(limit as usize).unwrap_or(NonZeroUsize::MIN)
}

#[tonic::async_trait]
impl sessions_server::Sessions for SessionService {
    type WatchStream = BoxStream<'static, Result<Event, Status>>;

    async fn create_session(
        &self,
        request: Request<CreateSessionRequest>,
    ) -> Result<Response<CreateSessionResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let account = account(request.caller.as_ref()).to_owned();
        let caller = request.caller.unwrap_or_default();
        let key = idempotency(&account, request.idempotency_key, &request.request_digest)?;
        let settings = Some(request.settings.unwrap_or_default());
        let details = Details { settings, principal: caller.principal, clusters: caller.clusters };
        let session = self.sessions.create(&account, details, key).await?;
        Ok(Response::new(CreateSessionResponse { session: Some(session) }))
    }

    async fn get_session(
        &self,
        request: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        self.permit(&request.session_id, request.caller.as_ref()).await?;
        let session = self.sessions.get(&request.session_id, account(request.caller.as_ref())).await?;
        Ok(Response::new(GetSessionResponse { session: Some(session) }))
    }

    async fn list_sessions(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let (account, only) = (account(request.caller.as_ref()), clusters(request.caller.as_ref()));
        let limit = limit(request.limit, 100);
        let sessions = self.sessions.list(account, only, &request.after_session_id, limit).await?;
        Ok(Response::new(ListSessionsResponse { sessions }))
    }

    async fn update_session(
        &self,
        request: Request<UpdateSessionRequest>,
    ) -> Result<Response<UpdateSessionResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        self.permit(&request.session_id, request.caller.as_ref()).await?;
        let (account, settings) = (account(request.caller.as_ref()), request.settings.unwrap_or_default());
        let session = self.sessions.update(&request.session_id, account, settings, request.before).await?;
        Ok(Response::new(UpdateSessionResponse { session: Some(session) }))
    }

    async fn delete_session(
        &self,
        request: Request<DeleteSessionRequest>,
    ) -> Result<Response<DeleteSessionResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        self.permit(&request.session_id, request.caller.as_ref()).await?;
        self.sessions.delete(&request.session_id, account(request.caller.as_ref())).await?;
        Ok(Response::new(DeleteSessionResponse {}))
    }

    async fn post_message(
        &self,
        request: Request<PostMessageRequest>,
    ) -> Result<Response<PostMessageResponse>, Status> {
        let span = span("sleuth.session.v1.Sessions/PostMessage", &request);
        let request = received(request, |asked| &mut asked.caller);
        self.permit(&request.session_id, request.caller.as_ref()).await?;
        let message = request.message.ok_or_else(|| Status::invalid_argument("message: it is missing"))?;
        let (account, principal) = (account(request.caller.as_ref()), principal(request.caller.as_ref()));
        let (session, key) = (&request.session_id, &request.client_message_id);
        let said = self.sessions.say(session, account, principal, message, key);
        let heard = tracing::Instrument::instrument(said, span).await?;
        let (message, sequence, turn_id) = (Some(heard.message), heard.sequence, heard.turn);
        Ok(Response::new(PostMessageResponse { message, sequence, turn_id }))
    }

    async fn list_messages(
        &self,
        request: Request<ListMessagesRequest>,
    ) -> Result<Response<ListMessagesResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let ListMessagesRequest { caller, session_id, limit: most, after_sequence } = request;
        self.permit(&session_id, caller.as_ref()).await?;
        let account = account(caller.as_ref());
        let (messages, has_more) =
            self.sessions.messages(&session_id, account, after_sequence, limit(most, MOST)).await?;
        Ok(Response::new(ListMessagesResponse { messages, has_more }))
    }

    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let ListEventsRequest { caller, session_id, cursor, filter, limit: most, before_sequence, search } =
            request;
        self.permit(&session_id, caller.as_ref()).await?;
        // All of it from the beginning, unless the last ones are asked for.
        let beginning = Cursor { place: Some(cursor::Place::AfterSequence(0)) };
        let cursor = cursor.or_else(|| (most == 0 && before_sequence == 0).then_some(beginning));
        let wanted = Wanted::of(filter, search)?;
        let range = Range { cursor, before: before_sequence, limit: limit(most, MOST) };
        let listed = self.sessions.events(&session_id, account(caller.as_ref()), range, wanted).await?;
        Ok(Response::new(ListEventsResponse {
            events: listed.events,
            has_more: listed.more,
            total: listed.total,
        }))
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let WatchRequest { caller, session_id, cursor, filter } =
            received(request, |asked| &mut asked.caller);
        self.permit(&session_id, caller.as_ref()).await?;
        let wanted = Wanted::of(filter, None)?;
        let events = self.sessions.watch(&session_id, account(caller.as_ref()), cursor, wanted).await?;
        let events = events.map_err(|error| Status::from(Error::Store(error)));
        Ok(Response::new(Box::pin(events)))
    }

    async fn cancel_turn(
        &self,
        request: Request<CancelTurnRequest>,
    ) -> Result<Response<CancelTurnResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        self.permit(&request.session_id, request.caller.as_ref()).await?;
        let reason = match request.reason.as_str() {
            "" => "User requested cancellation".to_owned(),
            reason => reason.to_owned(),
        };
        let account = account(request.caller.as_ref());
        let cancelled = self.sessions.cancel(&request.session_id, account, reason).await?;
        Ok(Response::new(CancelTurnResponse { cancelled }))
    }

    async fn submit_tool_results(
        &self,
        request: Request<SubmitToolResultsRequest>,
    ) -> Result<Response<SubmitToolResultsResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        self.permit(&request.session_id, request.caller.as_ref()).await?;
        let account = account(request.caller.as_ref());
        let accepted = self.sessions.bring(&request.session_id, account, request.results).await?;
        Ok(Response::new(SubmitToolResultsResponse { accepted }))
    }

    async fn decide_tool_calls(
        &self,
        request: Request<DecideToolCallsRequest>,
    ) -> Result<Response<DecideToolCallsResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        self.permit(&request.session_id, request.caller.as_ref()).await?;
        let account = account(request.caller.as_ref());
        let accepted = self.sessions.decide(&request.session_id, account, request.decisions).await?;
        Ok(Response::new(DecideToolCallsResponse { accepted }))
    }

    async fn create_agent(
        &self,
        request: Request<CreateAgentRequest>,
    ) -> Result<Response<CreateAgentResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let settings = request.settings.filter(|settings| !settings.name.is_empty());
        let settings = settings.ok_or_else(|| Status::invalid_argument("settings.name: it is missing"))?;
        let account = account(request.caller.as_ref());
        let key = idempotency(account, request.idempotency_key, &request.request_digest)?;
        let agent = self.sessions.create_agent(account, settings, key).await?;
        Ok(Response::new(CreateAgentResponse { agent: Some(agent) }))
    }

    async fn get_agent(
        &self,
        request: Request<GetAgentRequest>,
    ) -> Result<Response<GetAgentResponse>, Status> {
        let GetAgentRequest { caller, which } = received(request, |asked| &mut asked.caller);
        let account = account(caller.as_ref());
        let agent = match which {
            Some(Which::Id(id)) => self.sessions.agent(&id, account).await?,
            Some(Which::Name(name)) => self.sessions.agent_named(&name, account).await?,
            None => return Err(Status::invalid_argument("which: name an agent")),
        };
        Ok(Response::new(GetAgentResponse { agent: Some(agent) }))
    }

    async fn list_agents(
        &self,
        request: Request<ListAgentsRequest>,
    ) -> Result<Response<ListAgentsResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let (account, limit) = (account(request.caller.as_ref()), limit(request.limit, 100));
        let agents = self.sessions.agents(account, &request.after_agent_id, limit).await?;
        Ok(Response::new(ListAgentsResponse { agents }))
    }

    async fn update_agent(
        &self,
        request: Request<UpdateAgentRequest>,
    ) -> Result<Response<UpdateAgentResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let (account, settings) = (account(request.caller.as_ref()), request.settings.unwrap_or_default());
        let agent = self.sessions.update_agent(&request.agent_id, account, settings, request.before).await?;
        Ok(Response::new(UpdateAgentResponse { agent: Some(agent) }))
    }

    async fn delete_agent(
        &self,
        request: Request<DeleteAgentRequest>,
    ) -> Result<Response<DeleteAgentResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        self.sessions.delete_agent(&request.agent_id, account(request.caller.as_ref())).await?;
        Ok(Response::new(DeleteAgentResponse {}))
    }

    async fn put_image(
        &self,
        request: Request<PutImageRequest>,
    ) -> Result<Response<PutImageResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let PutImageRequest { caller, filename, media_type, content } = request;
        let image = Image { filename, media_type, ..Image::default() };
        let image = self.sessions.keep_image(account(caller.as_ref()), image, content).await?;
        Ok(Response::new(PutImageResponse { image: Some(image) }))
    }

    async fn get_image(
        &self,
        request: Request<GetImageRequest>,
    ) -> Result<Response<GetImageResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let (image, content) =
            self.sessions.image(&request.image_id, account(request.caller.as_ref())).await?;
        Ok(Response::new(GetImageResponse { image: Some(image), content }))
    }
}
