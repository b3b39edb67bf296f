//! The agent, as the gateway calls it: on whose behalf, in which trace, and for how long at most.

use std::{future::Future, time::Duration};

use http::HeaderMap;
use runtime::token::Token;
use tonic::{Code, Status, Streaming, metadata::MetadataMap};
use wire::{
    Transport,
    account::{AuthenticateRequest, AuthenticateResponse, accounts_client::AccountsClient},
    agent::{
        Caller, CancelRunRequest, ChatRequest, DecideOutcome, DecideRequest, Event, GetReadinessRequest,
        GetReadinessResponse, GetRunRequest, ListClustersRequest, ListModelsRequest, ListRunsRequest,
        ModelInfo, NameClusterRequest, RunInfo, RunState, WatchRequest, agent_client::AgentClient,
    },
};

/// Time that the agent has for everything but an answer, the start of an answer included.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// How much longer it may think for each MiB of an input that it keeps.
const PER_MIB: Duration = Duration::from_secs(2);

/// Time that a run may be followed once more; whoever follows it has a deadline of its own.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Largest message that the agent may send. An answer's first event carries the client's whole history, twice.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;

/// The agent.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    client: AgentClient<Transport>,
    accounts: AccountsClient<Transport>,
}

/// A run that has started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) run_id: String,
    pub(crate) events: Streaming<Event>,
}

impl Upstream {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            accounts: AccountsClient::new(transport.clone()),
            client: AgentClient::new(transport).max_decoding_message_size(MAX_MESSAGE),
        }
    }

    fn agent(&self) -> AgentClient<Transport> {
        self.client.clone()
    }

    /// Whose key it is.
    pub(crate) async fn authenticate(&self, key: &Token) -> Result<AuthenticateResponse, Status> {
        let key = AuthenticateRequest { id: key.id().to_owned(), digest: key.digest().to_vec() };
        Ok(within(self.accounts().authenticate(request(key, DEADLINE))).await?.into_inner())
    }

    /// Accounts and keys.
    pub(crate) fn accounts(&self) -> AccountsClient<Transport> {
        self.accounts.clone()
    }

    /// Starts a run. Dropping its events cancels it.
    pub(crate) async fn chat(&self, question: ChatRequest, deadline: Duration) -> Result<Started, Status> {
        let input = question.rlm.as_ref().map_or(0, |rlm| rlm.context.len());
        let patience = DEADLINE + PER_MIB * u32::try_from(input >> 20).unwrap_or(u32::MAX);
        let request = request(question, deadline);
        let response = within_time(patience, self.agent().chat(request)).await?;
        let run_id =
            response.metadata().get(wire::RUN_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        Ok(Started { run_id: run_id.to_owned(), events: response.into_inner() })
    }

    /// Reads a run from its start. Dropping its events says that the reader left.
    pub(crate) async fn watch(
        &self,
        caller: &Caller,
        run_id: String,
        deadline: Duration,
    ) -> Result<Started, Status> {
        let asked = WatchRequest { caller: Some(caller.clone()), run_id: run_id.clone(), after_position: 0 };
        let response = within(self.agent().watch(request(asked, deadline))).await?;
        Ok(Started { run_id, events: response.into_inner() })
    }

    /// Goes on with a run after a position.
    pub(crate) async fn rejoin(
        &self,
        caller: &Caller,
        run_id: String,
        after: u64,
    ) -> Result<Streaming<Event>, Status> {
        let asked = WatchRequest { caller: Some(caller.clone()), run_id, after_position: after };
        Ok(within(self.agent().watch(request(asked, LONGEST))).await?.into_inner())
    }

    /// The models, in the order of the configuration.
    pub(crate) async fn catalogue(&self, caller: &Caller) -> Result<Vec<ModelInfo>, Status> {
        let request = request(ListModelsRequest { caller: Some(caller.clone()) }, DEADLINE);
        let response = within(self.agent().list_models(request)).await?;
        Ok(response.into_inner().models)
    }

    /// Their names.
    pub(crate) async fn models(&self, caller: &Caller) -> Result<Vec<String>, Status> {
        Ok(self.catalogue(caller).await?.into_iter().map(|model| model.name).collect())
    }

    /// Settles a call that waits; says what became of the word.
    pub(crate) async fn decide(&self, word: DecideRequest) -> Result<DecideOutcome, Status> {
        let response = within(self.agent().decide(request(word, DEADLINE))).await?;
        Ok(response.into_inner().outcome())
    }

    /// Names of the clusters that are connected.
    pub(crate) async fn clusters(&self, caller: &Caller) -> Result<Vec<String>, Status> {
        let request = request(ListClustersRequest { caller: Some(caller.clone()) }, DEADLINE);
        let response = within(self.agent().list_clusters(request)).await?;
        Ok(response.into_inner().clusters.into_iter().map(|cluster| cluster.name).collect())
    }

    /// The one of some clusters that a model takes a text to be about.
    pub(crate) async fn name_cluster(&self, asked: NameClusterRequest) -> Result<Option<String>, Status> {
        let response = within(self.agent().name_cluster(request(asked, DEADLINE))).await?;
        Ok(Some(response.into_inner().cluster).filter(|name| !name.is_empty()))
    }

    /// Whether questions can be answered, and what is missing if not.
    pub(crate) async fn readiness(&self) -> Result<GetReadinessResponse, Status> {
        let request = request(GetReadinessRequest {}, DEADLINE);
        let response = within(self.agent().get_readiness(request)).await?;
        Ok(response.into_inner())
    }

    /// Runs, newest first.
    pub(crate) async fn runs(&self, caller: &Caller, limit: u32) -> Result<Vec<RunInfo>, Status> {
        let request = request(ListRunsRequest { caller: Some(caller.clone()), limit }, DEADLINE);
        let response = within(self.agent().list_runs(request)).await?;
        Ok(response.into_inner().runs)
    }

    /// One run.
    pub(crate) async fn run(&self, caller: &Caller, run_id: String) -> Result<RunInfo, Status> {
        let request = request(
            GetRunRequest { caller: Some(caller.clone()), run_id, ..GetRunRequest::default() },
            DEADLINE,
        );
        let response = within(self.agent().get_run(request)).await?;
        response.into_inner().run.ok_or_else(|| Status::internal("a run without content"))
    }

    /// The id of the run that the same question, with a key, has begun before.
    pub(crate) async fn begun(
        &self,
        caller: &Caller,
        idempotency_key: String,
        request_digest: Vec<u8>,
    ) -> Result<Option<String>, Status> {
        let asked = GetRunRequest {
            caller: Some(caller.clone()),
            idempotency_key,
            request_digest,
            ..GetRunRequest::default()
        };
        match within(self.agent().get_run(request(asked, DEADLINE))).await {
            Ok(response) => Ok(response.into_inner().run.map(|run| run.run_id)),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Cancels a run; its state before is returned.
    pub(crate) async fn cancel(
        &self,
        caller: &Caller,
        run_id: String,
        reason: String,
    ) -> Result<RunState, Status> {
        let request = request(CancelRunRequest { caller: Some(caller.clone()), run_id, reason }, DEADLINE);
        let response = within(self.agent().cancel_run(request)).await?;
        Ok(response.into_inner().state_before())
    }
}

/// A request in the trace of the current span, with a deadline that the agent knows.
pub(crate) fn request<T>(message: T, deadline: Duration) -> tonic::Request<T> {
    let mut headers = HeaderMap::new();
    runtime::propagation::inject(&mut headers);
    let mut request = tonic::Request::new(message);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
    request.set_timeout(deadline);
    request
}

/// Waits for an answer, but not forever.
pub(crate) async fn within<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    within_time(DEADLINE, call).await
}

async fn within_time<T>(time: Duration, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(time, call)
        .await
        .unwrap_or_else(|_| Err(Status::unavailable("the agent did not answer in time")))
}
