//! The `sleuth.agent.v1` service: thin handlers over the runs.

mod answer;
mod ask;
mod sessions;

use std::sync::Arc;

use domain::{Limits, Message, Part, Role, RunId, Steered, ToolProfile};
use futures_util::{StreamExt as _, stream::BoxStream};
use store::{Idempotency, tail};
use tonic::{Request, Response, Status};
use tracing::Instrument as _;
use uuid::Uuid;
use wire::agent::{
    Caller, CancelRunRequest, CancelRunResponse, ChatRequest, DecideRequest, DecideResponse, Event,
    GetReadinessRequest, GetReadinessResponse, GetRunRequest, GetRunResponse, ListClustersRequest,
    ListClustersResponse, ListModelsRequest, ListModelsResponse, ListRunsRequest, ListRunsResponse,
    ListToolsRequest, ListToolsResponse, NameClusterRequest, NameClusterResponse, RunInfo, SteerRequest,
    SteerResponse, WatchRequest, agent_server,
};

pub use sessions::SessionService;

use crate::naming;
use crate::runs::{Found, NotSettled, NotSteered, Reading, Runs};

/// The account of callers that name none.
const DEFAULT_ACCOUNT: &str = "default";

/// The agent's gRPC service.
pub struct Service {
    runs: Arc<Runs>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(runs: Arc<Runs>) -> Self {
        Self { runs }
    }

    async fn summary(&self, found: &Found) -> Result<RunInfo, Status> {
        self.runs.summary(found).await.map_err(|error| unavailable(&error))
    }

    /// The events after a position, for as long as somebody reads them. Where the run goes on elsewhere they end before
    /// the run does.
    fn events(&self, reading: Reading, after: u64) -> BoxStream<'static, Result<Event, Status>> {
        let left = reading.left().cancelled_owned();
        let events = tail(self.runs.log(), reading.run(), after).take_until(left);
        let events = events.map(move |event| {
            // The stream is the reader: it leaves when the stream is dropped.
            let _reading = &reading;
            match event {
                Ok(event) => Ok(answer::event(Arc::unwrap_or_clone(event))),
                Err(error) => Err(Status::unavailable(error.to_string())),
            }
        });
        Box::pin(events)
    }

    /// A run that the caller may see, and have something done in.
    async fn find(&self, id: String, caller: Option<&Caller>) -> Result<Found, Status> {
        let id = RunId::new(id);
        let found = self.runs.find(&id, account(caller)).await.map_err(|error| unavailable(&error))?;
        self.permitted(found.ok_or_else(|| Status::not_found(format!("there is no run {id}")))?, caller).await
    }

    /// Such a run that the same request has begun before.
    async fn begun(&self, asked: &Idempotency, caller: Option<&Caller>) -> Result<Found, Status> {
        let found = self.runs.begun(asked).await.map_err(|error| unavailable(&error))?;
        let unknown = || Status::not_found("this request has begun no run");
        self.permitted(found.ok_or_else(unknown)?, caller).await
    }

    async fn permitted(&self, found: Found, caller: Option<&Caller>) -> Result<Found, Status> {
        match self.runs.stays_within(&found, clusters(caller)).await.map_err(|error| unavailable(&error))? {
            true => Ok(found),
            false => Err(Status::permission_denied("the run looks at clusters that the API key is not for")),
        }
    }
}

fn unavailable(error: &store::Error) -> Status {
    Status::unavailable(error.to_string())
}

/// A request. For whom it is made is what the gate in front of this service knows, before what the request itself says.
fn received<T>(request: Request<T>, caller: impl FnOnce(&mut T) -> &mut Option<Caller>) -> T {
    let (_, extensions, mut message) = request.into_parts();
    if let Some(known) = extensions.get::<Caller>() {
        *caller(&mut message) = Some(known.clone());
    }
    message
}

fn account(caller: Option<&Caller>) -> &str {
    caller
        .map(|caller| caller.account.as_str())
        .filter(|account| !account.is_empty())
        .unwrap_or(DEFAULT_ACCOUNT)
}

/// The only clusters that a caller may reach; all if there are none.
fn clusters(caller: Option<&Caller>) -> &[String] {
    caller.map(|caller| caller.clusters.as_slice()).unwrap_or_default()
}

fn principal(caller: Option<&Caller>) -> &str {
    caller.map(|caller| caller.principal.as_str()).unwrap_or_default()
}

fn span<T>(rpc: &'static str, request: &Request<T>) -> tracing::Span {
    let span = tracing::info_span!(
        "rpc",
        otel.name = rpc,
        otel.kind = "server",
        rpc.system.name = "grpc",
        rpc.method = rpc
    );
    runtime::propagation::extract_metadata(request.metadata(), &span);
    span
}

#[tonic::async_trait]
impl agent_server::Agent for Service {
    type ChatStream = BoxStream<'static, Result<Event, Status>>;
    type WatchStream = BoxStream<'static, Result<Event, Status>>;

    async fn chat(&self, request: Request<ChatRequest>) -> Result<Response<Self::ChatStream>, Status> {
        let span = span("sleuth.agent.v1.Agent/Chat", &request);
        let question = ask::question(received(request, |asked| &mut asked.caller), self.runs.config())?;
        let reading =
            self.runs.start(question).instrument(span).await.map_err(|refusal| ask::refused(&refusal))?;
        let id = reading.run().as_str().parse();
        let mut response = Response::new(self.events(reading, 0));
        if let Ok(id) = id {
            response.metadata_mut().insert(wire::RUN_ID, id);
        }
        Ok(response)
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let found = self.find(request.run_id, request.caller.as_ref()).await?;
        Ok(Response::new(self.events(self.runs.read(found), request.after_position)))
    }

    async fn list_models(
        &self,
        _: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        Ok(Response::new(answer::models(self.runs.models())))
    }

    async fn list_tools(
        &self,
        request: Request<ListToolsRequest>,
    ) -> Result<Response<ListToolsResponse>, Status> {
        let caller = received(request, |asked| &mut asked.caller).caller;
        let offer = self
            .runs
            .tools()
            .anywhere(account(caller.as_ref()), clusters(caller.as_ref()))
            .offer(ToolProfile::default())
            .await
            .map_err(|missing| Status::unavailable(missing.to_string()))?;
        Ok(Response::new(answer::tools(&offer)))
    }

    async fn list_clusters(
        &self,
        request: Request<ListClustersRequest>,
    ) -> Result<Response<ListClustersResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let reach = self.runs.tools().reach(account(request.caller.as_ref()));
        let only = request.caller.map(|caller| caller.clusters).unwrap_or_default();
        let reached = reach.into_iter().filter(|(name, _)| only.is_empty() || only.contains(name));
        Ok(Response::new(answer::clusters(reached)))
    }

    async fn name_cluster(
        &self,
        request: Request<NameClusterRequest>,
    ) -> Result<Response<NameClusterResponse>, Status> {
        let NameClusterRequest { caller, text, clusters, model } =
            received(request, |asked| &mut asked.caller);
        let account = account(caller.as_ref()).to_owned();
        let usual = caller.map(|caller| caller.default_model);
        let model = [Some(model), usual].into_iter().flatten().find(|name| !name.is_empty());
        let found = match self.runs.models().get(model.as_deref()) {
            Ok(model) if self.runs.config().name_clusters && model.info().provider != "builtin" => {
                let limits = self.runs.within_budget(&account, Limits::default()).await;
                limits.map_err(|refusal| ask::refused(&refusal))?;
                let (named, usage) = naming::name(&*model, &text, &clusters).await;
                self.runs.spend(&account, usage).await;
                named
            }
            // The question itself says what is wrong with the model's name.
            Ok(_) | Err(_) => None,
        };
        Ok(Response::new(NameClusterResponse { cluster: found.unwrap_or_default() }))
    }

    async fn list_runs(
        &self,
        request: Request<ListRunsRequest>,
    ) -> Result<Response<ListRunsResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let limit = match request.limit {
            0 => 100,
            limit => limit.min(1000) as usize,
        };
        let found = self
            .runs
            .list(account(request.caller.as_ref()), clusters(request.caller.as_ref()), limit)
            .await
            .map_err(|error| unavailable(&error))?;
        let mut runs = Vec::with_capacity(found.len());
        for found in &found {
            runs.push(self.summary(found).await?);
        }
        Ok(Response::new(ListRunsResponse { runs }))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        let GetRunRequest { caller, run_id, idempotency_key, request_digest } =
            received(request, |asked| &mut asked.caller);
        let found = match ask::idempotency(account(caller.as_ref()), idempotency_key, &request_digest)? {
            Some(asked) => self.begun(&asked, caller.as_ref()).await?,
            None => self.find(run_id, caller.as_ref()).await?,
        };
        Ok(Response::new(GetRunResponse { run: Some(self.summary(&found).await?) }))
    }

    async fn cancel_run(
        &self,
        request: Request<CancelRunRequest>,
    ) -> Result<Response<CancelRunResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let found = self.find(request.run_id, request.caller.as_ref()).await?;
        let state_before = self.summary(&found).await?.state;
        let reason =
            if request.reason.is_empty() { "cancelled by request".to_owned() } else { request.reason };
        self.runs.cancel(found, reason).await.map_err(|error| unavailable(&error))?;
        Ok(Response::new(CancelRunResponse { state_before }))
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        if request.settlement.is_none() {
            return Err(Status::invalid_argument("settlement: it is missing; say what is decided"));
        }
        let found = self.find(request.run_id.clone(), request.caller.as_ref()).await?;
        let outcome = self.runs.settle(found, request).await.map_err(|error| match error {
            NotSettled::Unknown(_) => Status::not_found(error.to_string()),
            NotSettled::Over(_) => Status::failed_precondition(error.to_string()),
            NotSettled::Store(error) => unavailable(&error),
        })?;
        Ok(Response::new(DecideResponse { outcome: outcome.into() }))
    }

    async fn steer(&self, request: Request<SteerRequest>) -> Result<Response<SteerResponse>, Status> {
        let request = received(request, |asked| &mut asked.caller);
        let SteerRequest { caller, run_id, text, images, client_message_id } = request;
        if text.is_empty() && images.is_empty() {
            return Err(Status::invalid_argument("text: it is missing; say something"));
        }
        let found = self.find(run_id, caller.as_ref()).await?;
        let images = ask::images(images)?.into_iter().map(Part::Image);
        let text = Some(text).filter(|text| !text.is_empty()).map(Part::Text);
        let message = Message::new(Role::User, text.into_iter().chain(images).collect());
        let key = match client_message_id.as_str() {
            "" => Uuid::now_v7().simple().to_string(),
            key => format!("client/{key}"),
        };
        let principal = principal(caller.as_ref()).to_owned();
        self.runs.steer(found, Steered { key, message, principal }).await.map_err(|error| match error {
            NotSteered::Over(_) => Status::failed_precondition(error.to_string()),
            NotSteered::OtherMessage => Status::already_exists(error.to_string()),
            NotSteered::Blind(_) => Status::invalid_argument(error.to_string()),
            NotSteered::Store(store::Error::BadName(why)) => Status::invalid_argument(why),
            NotSteered::Store(error) => unavailable(&error),
        })?;
        Ok(Response::new(SteerResponse {}))
    }

    async fn get_readiness(
        &self,
        _: Request<GetReadinessRequest>,
    ) -> Result<Response<GetReadinessResponse>, Status> {
        Ok(Response::new(answer::readiness(&self.runs).await))
    }
}
