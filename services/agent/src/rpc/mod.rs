//! The `sleuth.agent.v1` service: thin handlers over the runs.

mod answer;
mod ask;

use std::sync::Arc;

use domain::RunId;
use futures_util::{StreamExt as _, stream::BoxStream};
use store::tail;
use tonic::{Request, Response, Status};
use tracing::Instrument as _;
use wire::agent::{
    CancelRunRequest, CancelRunResponse, ChatRequest, Event, GetReadinessRequest, GetReadinessResponse,
    GetRunRequest, GetRunResponse, ListModelsRequest, ListModelsResponse, ListRunsRequest, ListRunsResponse,
    ListToolsRequest, ListToolsResponse, WatchRequest, agent_server,
};

use crate::runs::{Reader, Runs};

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

    /// The events after a position, for as long as somebody reads them.
    fn events(&self, reader: Reader, after: u64) -> BoxStream<'static, Result<Event, Status>> {
        let events = tail(self.runs.log(), &reader.run().id, after);
        let events = events.map(move |event| {
            // The stream is the reader: it leaves when the stream is dropped.
            let _reading = &reader;
            match event {
                Ok(event) => Ok(Event::from(Arc::unwrap_or_clone(event))),
                Err(error) => Err(Status::unavailable(error.to_string())),
            }
        });
        Box::pin(events)
    }
}

fn account(caller: Option<&wire::agent::Caller>) -> &str {
    caller
        .map(|caller| caller.account.as_str())
        .filter(|account| !account.is_empty())
        .unwrap_or(DEFAULT_ACCOUNT)
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
        let question = ask::question(request.into_inner(), self.runs.config())?;
        let reader =
            self.runs.start(question).instrument(span).await.map_err(|refusal| ask::refused(&refusal))?;
        let id = reader.run().id.as_str().parse();
        let mut response = Response::new(self.events(reader, 0));
        if let Ok(id) = id {
            response.metadata_mut().insert(wire::RUN_ID, id);
        }
        Ok(response)
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let request = request.into_inner();
        let id = RunId::new(request.run_id);
        let run =
            self.runs.get(&id, account(request.caller.as_ref())).ok_or_else(|| answer::no_such_run(&id))?;
        Ok(Response::new(self.events(self.runs.read(run), request.after_position)))
    }

    async fn list_models(
        &self,
        _: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        Ok(Response::new(answer::models(self.runs.models())))
    }

    async fn list_tools(&self, _: Request<ListToolsRequest>) -> Result<Response<ListToolsResponse>, Status> {
        let offer =
            self.runs.tools().offer().await.map_err(|missing| Status::unavailable(missing.to_string()))?;
        Ok(Response::new(answer::tools(&offer)))
    }

    async fn list_runs(
        &self,
        request: Request<ListRunsRequest>,
    ) -> Result<Response<ListRunsResponse>, Status> {
        let request = request.into_inner();
        let limit = match request.limit {
            0 => 100,
            limit => limit.min(1000) as usize,
        };
        let runs = self.runs.list(account(request.caller.as_ref()), limit);
        Ok(Response::new(ListRunsResponse { runs: runs.iter().map(|run| answer::run(run)).collect() }))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        let request = request.into_inner();
        let id = RunId::new(request.run_id);
        let run =
            self.runs.get(&id, account(request.caller.as_ref())).ok_or_else(|| answer::no_such_run(&id))?;
        Ok(Response::new(GetRunResponse { run: Some(answer::run(&run)) }))
    }

    async fn cancel_run(
        &self,
        request: Request<CancelRunRequest>,
    ) -> Result<Response<CancelRunResponse>, Status> {
        let request = request.into_inner();
        let id = RunId::new(request.run_id);
        let run =
            self.runs.get(&id, account(request.caller.as_ref())).ok_or_else(|| answer::no_such_run(&id))?;
        let state_before = answer::state(&run.state()).into();
        let reason =
            if request.reason.is_empty() { "cancelled by request".to_owned() } else { request.reason };
        run.cancel(reason);
        Ok(Response::new(CancelRunResponse { state_before }))
    }

    async fn get_readiness(
        &self,
        _: Request<GetReadinessRequest>,
    ) -> Result<Response<GetReadinessResponse>, Status> {
        Ok(Response::new(answer::readiness(&self.runs).await))
    }
}
