//! The executor's gRPC service, over the tools, the policy and the processes.

use std::{borrow::Cow, collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt as _};
use tokio::time::timeout;
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tonic::{Code, Request, Response, Status, Streaming, metadata::MetadataMap};
use tonic_types::{ErrorDetails, StatusExt as _};
use tracing::Instrument as _;
use wire::executor::{
    AnswerHostCallRequest, AnswerHostCallResponse, AttachRequest, Caller, CancelRequest, CancelResponse,
    CloseSessionRequest, CloseSessionResponse, EffectClass, ExecuteEvent, ExecuteRequest, ListToolsRequest,
    ListToolsResponse, PlanRequest, PlanResponse, PutBlobRequest, PutBlobResponse, Verdict,
    answer_host_call_request, tool_executor_server::ToolExecutor,
};

mod bench;
mod blobs;
mod catalogue;
mod drive;
mod ending;
mod evaluate;
mod execution;
mod executions;
mod judge;
mod known;
mod launch;
mod permission;
mod records;
mod stop;
mod target;

pub(crate) use catalogue::Catalogue;
pub(crate) use judge::policy_version;

use crate::{
    Config,
    cluster::{Access, Clusters, Writes},
    policy::Effect,
    process::Launcher,
    redact::{Redactor, Suspicion},
    repl::{Interpreters, Name},
    tools::{Callable, Decision, Profile, RequestHeaders, Settings, UnknownProfile, Work},
    workspace::{self, Session, Workspaces},
};
use blobs::Intake;
use drive::{Limits, Order, Workshop};
use execution::{Call, Execution};
use executions::{Admission, Executions, Key};
use judge::{Busy, Judge, Judged, Standing};
use known::Known;
use records::Records;
use target::Targets;

/// What is said to callers who come too late.
const SHUTTING_DOWN: &str = "this executor is shutting down";
/// What is said of a call for a process that had the files of its session.
const LOST: &str = "the files of this session were on an executor that is gone, and went with it. Nothing was run; the \
    next call begins with an empty workspace";
/// When a caller for whom there was no room should come again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Serves the tools of one executor.
#[derive(Debug)]
pub struct Service {
    catalogue: Catalogue,
    workshop: Arc<Workshop>,
    executions: Arc<Executions>,
    labels: BTreeMap<String, String>,
    heartbeat: Duration,
    drain_time: Duration,
    tasks: TaskTracker,
    cancel: CancellationToken,
    workspaces: Arc<Workspaces>,
    intake: Intake,
    _sweeper: AbortOnDropHandle<()>,
}

impl Service {
    pub(crate) fn new(
        config: &Config,
        settings: Settings,
        policy_version: &str,
        launcher: Launcher,
        redactor: Redactor,
        catalogue: Catalogue,
    ) -> Self {
        let cancel = CancellationToken::new();
        let limits = executions::Limits {
            live: config.concurrency + config.queue,
            live_bytes: config.output_bytes,
            kept_for: config.kept_for,
            kept_executions: config.kept_executions,
            kept_bytes: config.kept_bytes,
        };
        let instance = catalogue.instance().to_owned();
        let workspaces = Arc::clone(&settings.site.workspaces);
        let interpreters = Arc::new(Interpreters::new(config.repl()));
        let records = Records::new(config.state.clone());
        let swept = sweep(records.clone(), Arc::clone(&workspaces), Arc::clone(&interpreters));
        let workshop = Workshop {
            judge: Judge {
                targets: Targets::new(config.kubernetes.source.paths().to_vec(), config.cluster.clone()),
                keys: config.grant_keys.clone(),
                policy_version: permission::version(policy_version, &records.place()),
                lifts: config.lifts,
                bench: judge::bench(),
                settings: Arc::new(settings),
            },
            records,
            redactor,
            launcher,
            interpreters,
            workspaces: Arc::clone(&workspaces),
            clusters: Clusters::new(config.kubernetes.clone()),
            instance: instance.clone(),
            limits: Limits {
                output_kept: config.output_bytes,
                output: config.output_limit,
                queue_time: config.queue_time,
                idle_time: config.idle_timeout,
                orphan_grace: config.orphan_grace,
            },
            leaving: cancel.clone(),
            places: drive::places(config.concurrency),
        };
        Self {
            executions: Arc::new(Executions::new(instance, limits, cancel.clone())),
            catalogue,
            workshop: Arc::new(workshop),
            labels: config.labels.clone(),
            heartbeat: config.heartbeat,
            drain_time: config.drain_time,
            tasks: TaskTracker::new(),
            cancel,
            _sweeper: AbortOnDropHandle::new(tokio::spawn(swept)),
            intake: Intake::new(Arc::clone(&workspaces)),
            workspaces,
        }
    }

    /// Takes no more calls, gives those that run some time to end, and waits until nothing of them is left.
    pub(crate) async fn shutdown(&self) {
        self.executions.close();
        self.tasks.close();
        if timeout(self.drain_time, self.tasks.wait()).await.is_err() {
            self.cancel.cancel();
            self.tasks.wait().await;
        }
    }

    fn tool(&self, name: &str, profile: &str) -> Result<Callable, Status> {
        self.catalogue
            .find(name, read_profile(profile)?)
            .ok_or_else(|| Status::not_found(format!("there is no tool `{name}`")))
    }

    fn find(&self, key: &Key) -> Result<Arc<Execution>, Status> {
        let unknown = || Status::not_found(format!("there is no execution `{}` here", key.id));
        self.executions.find(key).ok_or_else(unknown)
    }

    /// An execution that is known only because it may have changed something.
    async fn begun_before(&self, key: &Key) -> Option<Arc<Execution>> {
        let begun = self.workshop.begun(key).await?;
        let execution =
            Execution::new(&key.id, &begun.instance, Call::default(), 0, self.cancel.child_token());
        execution.finish(ending::begun_before(&begun));
        Some(Arc::new(execution))
    }

    fn shown(&self, text: &str) -> String {
        self.workshop.redactor.text(text, Suspicion::Usual).text
    }

    fn start(
        &self,
        execution: &Arc<Execution>,
        order: Order,
        request: &ExecuteRequest,
        metadata: &MetadataMap,
    ) {
        let tool = &order.tool;
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
        let workshop = Arc::clone(&self.workshop);
        let own = Running {
            execution: Arc::clone(execution),
            executions: Arc::clone(&self.executions),
            key: order.key.clone(),
        };
        let drive = async move {
            let finished = workshop.drive(&own.execution, &order).await;
            if let Some(code) = finished.exit_code {
                tracing::Span::current().record("process.exit.code", code);
            }
            tracing::debug!(
                ending = finished.ending().as_str_name(),
                bytes = finished.total_bytes,
                "execution ended"
            );
            own.execution.finish(finished);
        };
        self.tasks.spawn(drive.instrument(span));
    }

    fn events(&self, execution: &Arc<Execution>, known: Known) -> Response<Events> {
        Response::new(Box::pin(execution.read(known, self.heartbeat).map(Ok)))
    }
}

/// An execution that goes on. It ends with this, whatever ends this.
struct Running {
    execution: Arc<Execution>,
    executions: Arc<Executions>,
    key: Key,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without an ending of its own something went wrong here.
        self.execution.finish(ending::broken());
        self.executions.retire(self.key.clone());
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

    async fn list_tools(
        &self,
        request: Request<ListToolsRequest>,
    ) -> Result<Response<ListToolsResponse>, Status> {
        if self.executions.is_closed() {
            // Whoever looks for executors finds others.
            return Err(Status::unavailable(SHUTTING_DOWN));
        }
        let mut list = self.catalogue.list(read_profile(&request.get_ref().profile)?);
        for toolset in &mut list.toolsets {
            toolset.error = self.shown(&toolset.error);
        }
        list.labels = self.labels.clone().into_iter().collect();
        Ok(Response::new(list))
    }

    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanResponse>, Status> {
        let request = request.into_inner();
        let tool = self.tool(&request.tool, &request.profile)?;
        let headers = RequestHeaders::new(request.request_headers);
        let standing = Standing { session: request.session, grants: request.standing_grants, headers };
        let account = request.caller.unwrap_or_default().account;
        let judge = &self.workshop.judge;
        let arguments = own_arguments(judge, &request.cluster, &request.arguments_json)?;
        let judged = judge.judge(&tool, &arguments, &account, &standing).await;
        let Judged { plan, target, allowed_by } =
            judged.map_err(|Busy| busy("too many calls are being judged"))?;
        let (verdict, reason, prefixes, work) = match plan.decision {
            Decision::Allow(work) => (Verdict::Allow, String::new(), Vec::new(), Some(work)),
            Decision::Ask(ask) => {
                let reason = if judge.can_ask() { ask.reason } else { ask.refusal };
                (Verdict::Ask, reason, ask.prefixes, Some(ask.work))
            }
            Decision::Deny(reason) => (Verdict::Deny, reason, Vec::new(), None),
        };
        let command = work.as_ref().map(Work::invocation).unwrap_or_default();
        Ok(Response::new(PlanResponse {
            verdict: verdict.into(),
            reason: self.shown(&reason),
            description: self.shown(&plan.description),
            // One that would have to be masked cannot be saved.
            prefixes: prefixes.into_iter().filter(|prefix| self.shown(prefix) == *prefix).collect(),
            effect: effect_class(plan.effect).into(),
            policy_version: judge.policy_version.clone(),
            toolset: tool.toolset().to_owned(),
            command: visible(&self.shown(command)),
            target,
            allowed_by,
        }))
    }

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<Events>, Status> {
        let (metadata, _, request) = request.into_parts();
        let tool = self.tool(&request.tool, &request.profile)?;
        let key = key(request.caller.as_ref(), &request.execution_id)?;
        if !request.instance.is_empty() && request.instance != self.catalogue.instance() {
            return Err(Status::data_loss(LOST));
        }
        let arguments = own_arguments(&self.workshop.judge, &request.cluster, &request.arguments_json)?;
        let call = Call {
            tool: request.tool.clone(),
            arguments_json: request.arguments_json.clone(),
            grant: request.grant.clone(),
        };
        let execution = match self.executions.admit(&key, call) {
            Admission::New(execution) => {
                // The stream reads it from here on, so that it is not an orphan before it starts.
                let events = self.events(&execution, Known::default());
                let order = Order {
                    key,
                    tool,
                    arguments: arguments.into_owned(),
                    grant: request.grant.clone(),
                    standing: Standing {
                        session: request.session.clone(),
                        grants: request.standing_grants.clone(),
                        headers: RequestHeaders::new(request.request_headers.clone()),
                    },
                    access: access(&request),
                    interpreter: request.interpreter.clone(),
                    run_time: (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms)),
                };
                self.start(&execution, order, &request, &metadata);
                return Ok(events);
            }
            Admission::Known(execution) => execution,
            Admission::Conflict => {
                return Err(Status::already_exists("this execution id stands for another call"));
            }
            Admission::Full => {
                return Err(busy("too many executions are waiting"));
            }
            Admission::Closed => return Err(Status::unavailable(SHUTTING_DOWN)),
        };
        Ok(self.events(&execution, Known::default()))
    }

    async fn attach(&self, request: Request<AttachRequest>) -> Result<Response<Events>, Status> {
        let request = request.into_inner();
        let key = key(request.caller.as_ref(), &request.execution_id)?;
        let execution = match self.find(&key) {
            Ok(execution) => execution,
            Err(unknown) => self.begun_before(&key).await.ok_or(unknown)?,
        };
        Ok(self.events(&execution, Known::new(request.after_sequence, &request.output)))
    }

    async fn answer_host_call(
        &self,
        request: Request<AnswerHostCallRequest>,
    ) -> Result<Response<AnswerHostCallResponse>, Status> {
        let request = request.into_inner();
        let execution = self.find(&key(request.caller.as_ref(), &request.execution_id)?)?;
        let answer = match request.answer {
            Some(answer_host_call_request::Answer::ResultJson(json)) => Ok(json),
            Some(answer_host_call_request::Answer::Error(why)) => Err(why),
            None => Err("it was answered with nothing".to_owned()),
        };
        if execution.answer(&request.host_call_id, answer) {
            return Ok(Response::new(AnswerHostCallResponse {}));
        }
        Err(Status::not_found(format!("the execution waits for no host call `{}`", request.host_call_id)))
    }

    async fn put_blob(
        &self,
        request: Request<Streaming<PutBlobRequest>>,
    ) -> Result<Response<PutBlobResponse>, Status> {
        let (sha256, bytes) = self.intake.put(request.into_inner()).await?;
        Ok(Response::new(PutBlobResponse { sha256: sha256.into(), bytes }))
    }

    async fn close_session(
        &self,
        request: Request<CloseSessionRequest>,
    ) -> Result<Response<CloseSessionResponse>, Status> {
        let CloseSessionRequest { caller, session, interpreter } = request.into_inner();
        let session = Session { account: caller.unwrap_or_default().account, id: session };
        if !interpreter.is_empty() {
            self.workshop.interpreters.end(&Name { session, own: interpreter });
            return Ok(Response::new(CloseSessionResponse {}));
        }
        self.workshop.interpreters.close(&session);
        let workspaces = Arc::clone(&self.workspaces);
        let closed = tokio::task::spawn_blocking(move || workspaces.close(&session)).await;
        closed.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(CloseSessionResponse {}))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let request = request.into_inner();
        let execution = self.find(&key(request.caller.as_ref(), &request.execution_id)?)?;
        let was_running = !execution.is_finished() && !execution.cancel.is_cancelled();
        execution.cancel.cancel();
        Ok(Response::new(CancelResponse { was_running }))
    }
}

/// There is no room now.
fn busy(why: &str) -> Status {
    let retry = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
    Status::with_error_details(Code::ResourceExhausted, why, retry)
}

fn own_arguments<'a>(judge: &Judge, cluster: &str, json: &'a str) -> Result<Cow<'a, str>, Status> {
    judge.own_arguments(cluster, json).map_err(|elsewhere| Status::failed_precondition(elsewhere.to_string()))
}

/// For whom a call reaches clusters.
fn access(request: &ExecuteRequest) -> Access {
    Access {
        writes: Writes::Refused,
        run: request.run_id.clone(),
        execution: request.execution_id.clone(),
        principal: request.caller.as_ref().map(|caller| caller.principal.clone()).unwrap_or_default(),
    }
}

/// Ends what nobody has used for long: interpreters, files of sessions, and notes of calls.
async fn sweep(records: Records, workspaces: Arc<Workspaces>, interpreters: Arc<Interpreters>) {
    let mut ticks = tokio::time::interval(workspace::SWEEP);
    loop {
        ticks.tick().await;
        interpreters.sweep();
        let (records, workspaces) = (records.clone(), Arc::clone(&workspaces));
        let sweep = move || {
            records.sweep();
            workspaces.sweep();
        };
        if let Err(error) = tokio::task::spawn_blocking(sweep).await {
            tracing::warn!(%error, "what was left cannot be removed");
        }
    }
}

fn read_profile(name: &str) -> Result<Profile, Status> {
    name.parse().map_err(|unknown: UnknownProfile| Status::invalid_argument(unknown.to_string()))
}

fn key(caller: Option<&Caller>, id: &str) -> Result<Key, Status> {
    if id.is_empty() {
        return Err(Status::invalid_argument("`execution_id` is missing"));
    }
    Ok(Key { account: caller.map(|caller| caller.account.clone()).unwrap_or_default(), id: id.to_owned() })
}

/// A command as a person can read it: what could move a terminal's cursor, or hide text, is written out.
fn visible(command: &str) -> String {
    let hides = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut text = String::with_capacity(command.len());
    for symbol in command.chars() {
        if hides(symbol) { text.extend(symbol.escape_default()) } else { text.push(symbol) }
    }
    text
}

fn effect_class(effect: Effect) -> EffectClass {
    match effect {
        Effect::Read => EffectClass::Read,
        Effect::SensitiveRead => EffectClass::SensitiveRead,
        Effect::Mutation => EffectClass::Mutation,
    }
}
