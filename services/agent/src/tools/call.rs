//! One tool call, from its start to its result.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use domain::{
    Before, EventKind, OutputStream, Permission, Placement, RunId, ToolCall, ToolProfile, ToolResult,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::Request;
use tracing::Instrument as _;
use wire::executor;

use super::{
    Home, Interpreter, Question, RequestHeaders,
    execution::{Execution, Output},
    executors::Pool,
    rules::Rules,
    runbook,
};
use crate::runs::Audience;

/// How long an executor may take to confirm a cancellation.
pub(super) const CANCEL_TIME: Duration = Duration::from_secs(5);
/// Pieces of output that wait for the run to take them; then the executor waits.
const BACKLOG: usize = 16;

/// On whose behalf calls are made, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub run: RunId,
    pub account: String,
    pub principal: String,
    /// The session that standing permissions belong to.
    pub session: String,
    /// Whose tools it has.
    pub profile: ToolProfile,
    /// Signed standing permissions.
    pub standing: Arc<[Bytes]>,
    /// What the request brings along for toolsets.
    pub headers: RequestHeaders,
    /// Whether a runbook was fetched.
    pub follows_runbook: bool,
    /// What the client says of calls.
    pub rules: Rules,
    /// Where the session's files are.
    pub home: Home,
    pub deadline: Instant,
    /// Who follows the run: without anybody, nothing begins that may change something.
    pub audience: watch::Receiver<Audience>,
    /// Cancelled when this process leaves the run to another: then what goes on at executors is left as it is.
    pub leaving: CancellationToken,
}

impl Context {
    /// What a person allows for later calls counts from now on.
    pub(crate) fn remember<'a>(&mut self, events: impl IntoIterator<Item = &'a EventKind> + Clone) {
        self.rules.hear(events.clone());
        self.follows_runbook |= events
            .clone()
            .into_iter()
            .any(|event| matches!(event, EventKind::ToolStarted { call, .. } if call.name == runbook::NAME));
        let new = events.into_iter().flat_map(|event| match event {
            EventKind::CallAllowed { permission, .. } => permission.standing.as_slice(),
            _ => &[],
        });
        let new: Vec<_> = new.map(|grant| Bytes::copy_from_slice(grant)).collect();
        if !new.is_empty() {
            self.standing = self.standing.iter().cloned().chain(new).collect();
        }
    }

    /// Waits until somebody follows the run.
    pub(super) async fn attended(&self) {
        let mut audience = self.audience.clone();
        if audience.wait_for(|audience| audience.is_there()).await.is_err() {
            // Nobody owns the run any more: whoever dropped it drops this call as well.
            std::future::pending::<()>().await;
        }
    }

    /// The session, if it has files: these are where its first call was.
    pub(super) fn files(&self) -> Option<&str> {
        match self.profile {
            ToolProfile::Holmes => None,
            ToolProfile::Harness | ToolProfile::Rlm => Some(&self.session),
        }
    }

    pub(super) fn caller(&self) -> executor::Caller {
        executor::Caller { account: self.account.clone(), principal: self.principal.clone() }
    }
}

/// Where calls go.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    pub pool: Arc<Pool>,
    /// The cluster, where calls choose among several.
    pub cluster: String,
}

/// A call in progress. Dropping it ends the execution.
#[derive(Debug)]
pub(crate) struct Running {
    /// Output as it comes; closed before `result` is there.
    pub output: mpsc::Receiver<(OutputStream, Vec<u8>)>,
    /// What it asks for, if it is code.
    pub questions: mpsc::Receiver<Question>,
    /// Where it is about to go.
    pub placings: mpsc::Receiver<Placing>,
    /// How it ended.
    pub result: oneshot::Receiver<ToolResult>,
    _task: Option<AbortOnDropHandle<()>>,
}

/// An executor that is to be given a call, as soon as that is noted.
#[derive(Debug)]
pub(crate) struct Placing {
    pub placement: Placement,
    /// Told that it is. Dropped: the call does not go there.
    pub noted: oneshot::Sender<()>,
}

impl Running {
    pub(super) fn start(
        at: Destination,
        call: ToolCall,
        permission: Option<Permission>,
        before: Before,
        interpreter: Option<Interpreter>,
        context: &Context,
    ) -> Self {
        let (questions_to, questions) = mpsc::channel(BACKLOG);
        let (output_to, output) = mpsc::channel(BACKLOG);
        let (placings_to, placings) = mpsc::channel(1);
        let (result_to, result) = oneshot::channel();
        let span = span(&call);
        let execution = Execution::new(at, &call, permission, interpreter, placings_to, context);
        let context = context.clone();
        let task = async move {
            let Before { placement, printed: skip } = before;
            let output = Output::new(output_to, skip, questions_to);
            let finished = execution.run(&call, &context, output, placement.as_ref()).await;
            if finished.error.is_some() {
                tracing::Span::current().record("error.type", "tool_error");
            }
            // A run that has ended wants no result.
            let _ = result_to.send(finished);
        };
        Self {
            output,
            questions,
            placings,
            result,
            _task: Some(AbortOnDropHandle::new(tokio::spawn(task.instrument(span)))),
        }
    }

    /// A call that takes no time.
    pub(super) fn at_once(call: &ToolCall, run: impl FnOnce() -> ToolResult) -> Self {
        let (_, output) = mpsc::channel(1);
        let (_, questions) = mpsc::channel(1);
        let (_, placings) = mpsc::channel(1);
        let (result_to, result) = oneshot::channel();
        // The receiver is at hand.
        let _ = result_to.send(span(call).in_scope(run));
        Self { output, questions, placings, result, _task: None }
    }

    /// Its result, where nobody wants to know what it prints and where it runs. `None` if it was lost.
    pub(crate) async fn finished(mut self) -> Option<ToolResult> {
        loop {
            tokio::select! {
                Some(_) = self.output.recv() => {}
                Some(placing) = self.placings.recv() => drop(placing.noted.send(())),
                result = &mut self.result => return result.ok(),
            }
        }
    }
}

fn span(call: &ToolCall) -> tracing::Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {}", call.name),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name,
        gen_ai.tool.call.id = %call.id,
        sleuth.executor = tracing::field::Empty,
        error.type = tracing::field::Empty,
    )
}

/// Adds the current span to a request.
pub(super) fn traced<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    runtime::propagation::inject_request(&mut request);
    request
}
