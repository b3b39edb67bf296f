//! The executor's gRPC service, over the tools, the policy and the processes.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt as _};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Request, Response, Status, metadata::MetadataMap};
use tracing::Instrument as _;
use wire::executor::{
    AnswerHostCallRequest, AnswerHostCallResponse, AttachRequest, Caller, CancelRequest, CancelResponse,
    EffectClass, ExecuteEvent, ExecuteRequest, ListToolsRequest, ListToolsResponse, PlanRequest,
    PlanResponse, Verdict, tool_executor_server::ToolExecutor,
};

mod catalogue;
mod drive;
mod execution;
mod executions;

pub(crate) use catalogue::Catalogue;

use crate::{
    Config,
    policy::{self, Effect},
    process::Launcher,
    tools::{Callable, Decision, Plan, Settings},
};
use drive::Workshop;
use execution::{Call, Execution};
use executions::{Admission, Executions, Key, Limits};

/// How long a call may be judged.
const PLAN_TIME: Duration = Duration::from_secs(5);

/// Serves the tools of one executor.
#[derive(Debug)]
pub struct Service {
    catalogue: Catalogue,
    workshop: Arc<Workshop>,
    executions: Arc<Executions>,
    heartbeat: Duration,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

impl Service {
    pub(crate) fn new(config: &Config, settings: Settings, launcher: Launcher, catalogue: Catalogue) -> Self {
        let cancel = CancellationToken::new();
        let limits = Limits {
            live: config.concurrency + config.queue,
            live_bytes: config.output_bytes,
            kept_for: config.kept_for,
            kept_executions: config.kept_executions,
            kept_bytes: config.kept_bytes,
        };
        let workshop = Workshop {
            settings: Arc::new(settings),
            launcher,
            output_bytes: config.output_bytes,
            orphan_grace: config.orphan_grace,
            places: tokio::sync::Semaphore::new(config.concurrency),
        };
        Self {
            executions: Arc::new(Executions::new(catalogue.instance().to_owned(), limits, cancel.clone())),
            catalogue,
            workshop: Arc::new(workshop),
            heartbeat: config.heartbeat,
            tasks: TaskTracker::new(),
            cancel,
        }
    }

    /// Takes no more calls, ends those that run, and waits until nothing of them is left.
    pub(crate) async fn shutdown(&self) {
        self.cancel.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn tool(&self, name: &str) -> Result<Callable, Status> {
        self.catalogue.find(name).ok_or_else(|| Status::not_found(format!("there is no tool `{name}`")))
    }

    fn find(&self, key: &Key) -> Result<Arc<Execution>, Status> {
        let unknown = || Status::not_found(format!("there is no execution `{}` here", key.id));
        self.executions.find(key).ok_or_else(unknown)
    }

    fn start(
        &self,
        key: Key,
        execution: &Arc<Execution>,
        tool: Callable,
        request: &ExecuteRequest,
        metadata: &MetadataMap,
    ) {
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = format!("execute_tool {}", tool.name),
            otel.kind = "server",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool.name,
            gen_ai.tool.call.id = request.call_id,
            sleuth.run.id = request.run_id,
            process.exit.code = tracing::field::Empty,
        );
        runtime::propagation::extract_metadata(metadata, &span);
        let run_time = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
        let (execution, executions) = (Arc::clone(execution), Arc::clone(&self.executions));
        let workshop = Arc::clone(&self.workshop);
        let drive = async move {
            let finished = workshop.drive(&execution, &tool, run_time).await;
            if let Some(code) = finished.exit_code {
                tracing::Span::current().record("process.exit.code", code);
            }
            tracing::debug!(
                ending = finished.ending().as_str_name(),
                bytes = finished.total_bytes,
                "execution ended"
            );
            execution.finish(finished);
            executions.retire(key);
        };
        self.tasks.spawn(drive.instrument(span));
    }

    fn events(&self, execution: &Arc<Execution>, after: u64) -> Response<Events> {
        Response::new(Box::pin(execution.read(after, self.heartbeat).map(Ok)))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

type Events = Pin<Box<dyn Stream<Item = Result<ExecuteEvent, Status>> + Send>>;

#[tonic::async_trait]
impl ToolExecutor for Service {
    type ExecuteStream = Events;
    type AttachStream = Events;

    async fn list_tools(&self, _: Request<ListToolsRequest>) -> Result<Response<ListToolsResponse>, Status> {
        Ok(Response::new(self.catalogue.list()))
    }

    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanResponse>, Status> {
        let request = request.into_inner();
        let tool = self.tool(&request.tool)?;
        let plan = plan(&tool, &self.workshop.settings, &request.arguments_json).await;
        let (verdict, reason) = match plan.decision {
            Decision::Allow(_) => (Verdict::Allow, String::new()),
            Decision::Ask(reason) => (Verdict::Ask, reason),
            Decision::Deny(reason) => (Verdict::Deny, reason),
        };
        Ok(Response::new(PlanResponse {
            verdict: verdict.into(),
            reason,
            description: plan.description,
            prefixes: Vec::new(),
            effect: effect_class(plan.effect).into(),
            policy_version: policy::VERSION.to_owned(),
            toolset: tool.toolset().to_owned(),
            ..PlanResponse::default()
        }))
    }

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<Events>, Status> {
        let (metadata, _, request) = request.into_parts();
        let tool = self.tool(&request.tool)?;
        let key = key(request.caller.as_ref(), &request.execution_id)?;
        let call = Call { tool: request.tool.clone(), arguments_json: request.arguments_json.clone() };
        let execution = match self.executions.admit(&key, call) {
            Admission::New(execution) => {
                // The stream reads it from here on, so that it is not an orphan before it starts.
                let events = self.events(&execution, 0);
                self.start(key, &execution, tool, &request, &metadata);
                return Ok(events);
            }
            Admission::Known(execution) => execution,
            Admission::Conflict => {
                return Err(Status::already_exists("this execution id stands for another call"));
            }
            Admission::Full => {
                return Err(Status::resource_exhausted(
                    "too many executions are waiting; try again in a second",
                ));
            }
            Admission::Closed => return Err(Status::unavailable("this executor is shutting down")),
        };
        Ok(self.events(&execution, 0))
    }

    async fn attach(&self, request: Request<AttachRequest>) -> Result<Response<Events>, Status> {
        let request = request.into_inner();
        let execution = self.find(&key(request.caller.as_ref(), &request.execution_id)?)?;
        Ok(self.events(&execution, request.after_sequence))
    }

    async fn answer_host_call(
        &self,
        request: Request<AnswerHostCallRequest>,
    ) -> Result<Response<AnswerHostCallResponse>, Status> {
        let request = request.into_inner();
        self.find(&key(request.caller.as_ref(), &request.execution_id)?)?;
        Err(Status::not_found(format!("the execution waits for no host call `{}`", request.host_call_id)))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let request = request.into_inner();
        let execution = self.find(&key(request.caller.as_ref(), &request.execution_id)?)?;
        let was_running = !execution.is_finished() && !execution.cancel.is_cancelled();
        execution.cancel.cancel();
        Ok(Response::new(CancelResponse { was_running }))
    }
}

fn key(caller: Option<&Caller>, id: &str) -> Result<Key, Status> {
    if id.is_empty() {
        return Err(Status::invalid_argument("`execution_id` is missing"));
    }
    Ok(Key { account: caller.map(|caller| caller.account.clone()).unwrap_or_default(), id: id.to_owned() })
}

/// Plans where blocking is fine. What cannot be judged in time is refused.
async fn plan(tool: &Callable, settings: &Arc<Settings>, arguments_json: &str) -> Plan {
    let (settings, arguments) = (Arc::clone(settings), arguments_json.to_owned());
    let own = tool.clone();
    let planned = tokio::task::spawn_blocking(move || own.plan(&settings, &arguments));
    match tokio::time::timeout(PLAN_TIME, planned).await {
        Ok(Ok(plan)) => plan,
        Ok(Err(_)) | Err(_) => Plan {
            description: tool.name.clone(),
            effect: Effect::Mutation,
            decision: Decision::Deny(
                "refused: The call could not be judged. Write it in a simpler way.".to_owned(),
            ),
        },
    }
}

fn effect_class(effect: Effect) -> EffectClass {
    match effect {
        Effect::Read => EffectClass::Read,
        Effect::SensitiveRead => EffectClass::SensitiveRead,
        Effect::Mutation => EffectClass::Mutation,
    }
}
