//! One execution: given to an executor, followed, found again, and cancelled unless it has ended.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use domain::{CallId, OutputStream, Permission, Placement, Printed, RunId, ToolCall, ToolResult};
use futures_util::future::join_all;
use prost::Message as _;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};
use wire::executor::{self, EffectClass, Ending, ExecuteEvent, execute_event::Kind};

use super::{
    Home, Interpreter, Question,
    call::{CANCEL_TIME, Context, Destination, Placing, traced},
    executors::{self, Busy, Client, Wish},
    result,
};

/// An executor says something every five seconds while a call runs; after this silence it is lost.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a lost execution is looked for.
const ATTACH_TIME: Duration = Duration::from_secs(3);
/// What the model reads of a call whose end nobody knows.
const UNKNOWN: &str = "This call's executor was lost, and nobody knows whether it did what it was asked. \
    It was not run again. Look at the state of things before you try once more.";
/// How often a call that only reads begins again elsewhere because its executor was lost.
const MOVES: u32 = 2;
/// How long an executor may take to come back with a call: less than it keeps calls that nobody follows.
pub(super) const RETURN_TIME: Duration = Duration::from_secs(20);
/// How often in a row a call is found again without coming further, before it counts as lost.
const VAIN_RETURNS: u32 = 20;
/// Time between two looks whether one is there.
const RETURN_PAUSE: Duration = Duration::from_millis(200);

/// An execution that is cancelled at its executor unless it has ended.
pub(super) struct Execution {
    to: Destination,
    /// The executor that has it.
    at: Option<Busy>,
    /// Those that were lost over it.
    lost: Vec<String>,
    id: String,
    grant: Bytes,
    caller: executor::Caller,
    /// What runs it, if it is code.
    interpreter: Option<Interpreter>,
    /// Where its session's files are, if it has any.
    home: Option<Home>,
    /// Where it is told which executor it goes to.
    placings: mpsc::Sender<Placing>,
    leaving: CancellationToken,
    ended: bool,
}

/// Where output goes, and how much of it is there already.
pub(super) struct Output {
    to: mpsc::Sender<(OutputStream, Vec<u8>)>,
    skip: Printed,
    passed: Printed,
    questions: mpsc::Sender<Question>,
}

impl Output {
    /// `skip` is what is known already.
    pub(super) fn new(
        to: mpsc::Sender<(OutputStream, Vec<u8>)>,
        skip: Printed,
        questions: mpsc::Sender<Question>,
    ) -> Self {
        Self { to, skip, passed: Printed::default(), questions }
    }

    async fn pass(&mut self, stream: OutputStream, chunk: executor::OutputChunk) {
        let known = self.skip.on(stream).saturating_sub(chunk.offset);
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(chunk.data.len());
        if known < chunk.data.len() {
            *self.passed.on(stream) += (chunk.data.len() - known) as u64;
            // Without a reader only the result counts.
            let _ = self.to.send((stream, chunk.data.slice(known..).into())).await;
        }
    }

    /// The call begins once more: what was passed on is not passed on again.
    fn again(&mut self) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            *self.skip.on(stream) += std::mem::take(self.passed.on(stream));
        }
    }
}

/// What goes on when an executor is lost.
struct GoingOn<'a> {
    call: &'a ToolCall,
    context: &'a Context,
    output: &'a mut Output,
    /// The last that was seen of it.
    seen: &'a mut u64,
}

impl Execution {
    pub(super) fn new(
        to: Destination,
        call: &ToolCall,
        permission: Option<Permission>,
        interpreter: Option<Interpreter>,
        placings: mpsc::Sender<Placing>,
        context: &Context,
    ) -> Self {
        // A permission is for the execution of the run that asked.
        let (run, grant) = match permission {
            Some(permission) => (permission.run, permission.grant.into()),
            None => (context.run.clone(), Bytes::new()),
        };
        let id = execution_id(&run, &call.id);
        let leaving = context.leaving.clone();
        Self {
            to,
            at: None,
            lost: Vec::new(),
            id,
            grant,
            caller: context.caller(),
            interpreter,
            home: context.files().map(|_| context.home.clone()),
            placings,
            leaving,
            ended: false,
        }
    }

    /// `placed` is where another process may have given it to: there it may go on, or have ended.
    pub(super) async fn run(
        mut self,
        call: &ToolCall,
        context: &Context,
        mut output: Output,
        placed: Option<&Placement>,
    ) -> ToolResult {
        let (mut seen, mut moves, mut vain) = (0, 0, 0);
        let mut stream = match placed {
            None => self.execute(call, context).await,
            Some(placed) => match self.find_or_repeat(&placed.executor, call, context).await {
                Some(stream) => stream,
                None => return ToolResult::error(UNKNOWN),
            },
        };
        loop {
            let before = seen;
            let (lost, gone) = match &mut stream {
                Ok(events) => match self.follow(events, &mut output, &mut seen).await {
                    Ok(finished) if moves < MOVES && self.is_handed_back(&finished) => {
                        (Status::unavailable(finished.error), true)
                    }
                    Ok(finished) => {
                        self.ended = true;
                        return result::from_executor(finished);
                    }
                    Err(status) => (status, false),
                },
                // An executor may have it, and could not say so.
                Err(status) if seen == 0 && moves < MOVES && executors::is_doubtful(status) => {
                    moves += 1;
                    match self.find_or_repeat("", call, context).await {
                        Some(found) => stream = found,
                        None => return ToolResult::error(UNKNOWN),
                    }
                    continue;
                }
                Err(status) if seen > 0 && !self.only_reads(call, context).await => {
                    tracing::warn!(error = status.message(), "nobody knows what became of a call");
                    return ToolResult::error(UNKNOWN);
                }
                Err(status) => return not_run(status, seen),
            };
            vain = if seen > before { 0 } else { vain + 1 };
            if vain > 0 {
                sleep(RETURN_PAUSE).await;
            }
            // The connection may be gone while the execution goes on.
            let attached =
                if gone || vain > VAIN_RETURNS { Err(lost.clone()) } else { self.attach(seen).await };
            stream = match attached {
                Ok(stream) => Ok(stream),
                Err(_) if executors::is_lost(&lost) => {
                    let going_on = GoingOn { call, context, output: &mut output, seen: &mut seen };
                    self.go_on(going_on, &mut moves, lost).await
                }
                Err(_) => Err(lost),
            };
        }
    }

    /// Follows it where it is. What changes nothing runs once more where nobody has it; of anything else nobody knows.
    async fn find_or_repeat(
        &mut self,
        executor: &str,
        call: &ToolCall,
        context: &Context,
    ) -> Option<Result<Streaming<ExecuteEvent>, Status>> {
        if let Some(stream) = self.look(executor).await {
            return Some(Ok(stream));
        }
        match self.only_reads(call, context).await {
            true => Some(self.execute(call, context).await),
            false => None,
        }
    }

    /// Looks for it, also at executors that are on their way back.
    async fn look(&mut self, executor: &str) -> Option<Streaming<ExecuteEvent>> {
        let began = Instant::now();
        loop {
            if let Some(stream) = self.find(executor).await {
                return Some(stream);
            }
            if !self.to.pool.expects() || began.elapsed() >= RETURN_TIME {
                return None;
            }
            sleep(RETURN_PAUSE).await;
        }
    }

    /// Whether its executor could not bring it to an end, it may begin again, and there is another one for it.
    fn is_handed_back(&self, finished: &executor::Finished) -> bool {
        let here = self.at.as_ref().map(|member| member.name());
        let is_fresh = |name: &str| Some(name) != here && !self.lost.iter().any(|lost| lost == name);
        finished.ending() == Ending::Lost
            && self.to.pool.members().iter().any(|member| is_fresh(member.name()))
    }

    /// Its executor is lost: another one takes what only reads; one that dialled in may come back with it.
    async fn go_on(
        &mut self,
        at: GoingOn<'_>,
        moves: &mut u32,
        lost: Status,
    ) -> Result<Streaming<ExecuteEvent>, Status> {
        let Some(member) = self.at.take() else { return Err(lost) };
        member.failed(&lost);
        self.lost.push(member.name().to_owned());
        if *moves < MOVES && self.only_reads(at.call, at.context).await {
            *moves += 1;
            *at.seen = 0;
            at.output.again();
            return self.execute(at.call, at.context).await;
        }
        if !member.dials_in() {
            return Err(lost);
        }
        let comes = async {
            loop {
                let back = self.to.pool.successor(&member).await?;
                match self.attach_at(back.client(), *at.seen).await {
                    // That link is gone, too.
                    Err(status) if executors::is_lost(&status) => sleep(RETURN_PAUSE).await,
                    attached => return Some((back, attached)),
                }
            }
        };
        let Ok(Some((back, attached))) = timeout(RETURN_TIME, comes).await else { return Err(lost) };
        self.lost.pop();
        self.at = Some(back.begin());
        attached.map_err(|_| lost)
    }

    /// Gives it to an executor.
    async fn execute(
        &mut self,
        call: &ToolCall,
        context: &Context,
    ) -> Result<Streaming<ExecuteEvent>, Status> {
        if !context.audience.borrow().is_there() && !self.only_reads(call, context).await {
            context.attended().await;
        }
        let not = [self.lost.clone(), self.not_shown(call, context).await].concat();
        let left = context.deadline.saturating_duration_since(Instant::now());
        let request = executor::ExecuteRequest {
            caller: Some(self.caller.clone()),
            execution_id: self.id.clone(),
            run_id: context.run.as_str().to_owned(),
            call_id: call.id.as_str().to_owned(),
            tool: call.name.clone(),
            arguments_json: call.arguments.clone(),
            grant: self.grant.clone(),
            standing_grants: context.standing.to_vec(),
            session: context.session.clone(),
            profile: context.profile.name().to_owned(),
            timeout_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1),
            interpreter: None,
            request_headers: context.headers.to_wire(),
            instance: self.home.as_ref().map(Home::instance).unwrap_or_default(),
            cluster: self.to.cluster.clone(),
        };
        let is_full = &AtomicBool::new(false);
        let tool = Some((context.profile, call.name.as_str()));
        let wish = Wish { not: &not, tool, near: context.files(), once: true };
        let began = Instant::now();
        let asked = loop {
            let asked = self.to.pool.ask(wish, |member| {
                let (mut request, own, context) =
                    (request.clone(), self.interpreter.clone(), context.clone());
                let placings = self.placings.clone();
                async move {
                    let (executor, instance) = (member.name().to_owned(), member.instance());
                    note(&placings, Placement { executor, instance }).await?;
                    let mut client = member.client();
                    if let Some(own) = own {
                        let prepared = own.prepare(&client, &context).await;
                        request.interpreter = Some(prepared.map_err(Status::failed_precondition)?);
                    }
                    let asked = timeout(SILENCE, client.execute(traced(request))).await;
                    asked.unwrap_or_else(|_| Err(silent())).inspect_err(|status| {
                        is_full.fetch_or(status.code() == Code::ResourceExhausted, Ordering::Relaxed);
                    })
                }
            });
            match asked.await {
                // An executor that dials in may be on its way to another agent, or back to this one.
                Err(status)
                    if executors::is_unsent(&status)
                        && self.to.pool.expects()
                        && began.elapsed() < RETURN_TIME =>
                {
                    sleep(RETURN_PAUSE).await;
                }
                asked => break asked,
            }
        };
        let (stream, member) = match asked {
            Err(status) if status.code() == Code::DataLoss => {
                let is_lost = !is_full.load(Ordering::Relaxed);
                return Err(self.without_files(&context.home, status, is_lost).await);
            }
            asked => asked?,
        };
        tracing::Span::current().record("sleuth.executor", member.name());
        self.at = Some(member);
        Ok(stream.into_inner())
    }

    /// An executor has refused the call because another one has, or had, the session's files.
    async fn without_files(&self, home: &Home, refused: Status, is_lost: bool) -> Status {
        if is_lost {
            home.is_lost();
        }
        self.note_home(home).await;
        match is_lost {
            true => refused,
            false => {
                Status::resource_exhausted("the executor that has the session's files has too much to do now")
            }
        }
    }

    /// Has it noted where the session's files are, where that is not what was noted with the call.
    async fn note_home(&self, home: &Home) {
        let executor = self.at.as_ref().map(|member| member.name().to_owned()).unwrap_or_default();
        // A run that has ended has no use for it.
        let _ = note(&self.placings, Placement { executor, instance: home.instance() }).await;
    }

    fn plan(&self, call: &ToolCall, context: &Context) -> executor::PlanRequest {
        executor::PlanRequest {
            caller: Some(self.caller.clone()),
            tool: call.name.clone(),
            arguments_json: call.arguments.clone(),
            session: context.session.clone(),
            profile: context.profile.name().to_owned(),
            request_headers: context.headers.to_wire(),
            cluster: self.to.cluster.clone(),
            ..executor::PlanRequest::default()
        }
    }

    /// Where a person allowed it: executors that would not do what the person was shown. They are passed over as long
    /// as there are others.
    async fn not_shown(&self, call: &ToolCall, context: &Context) -> Vec<String> {
        let members = self.to.pool.members();
        let Some(shown) = shown(&self.grant).filter(|_| members.len() > 1) else { return Vec::new() };
        let asked = members.iter().map(async |member| {
            let mut client = member.client();
            let plan =
                timeout(ATTACH_TIME, client.plan(traced(self.plan(call, context)))).await.ok()?.ok()?;
            let plan = plan.into_inner();
            (plan.policy_version == shown.policy_version && plan.target == shown.target)
                .then_some(member.name())
        });
        let same: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
        let others = members.iter().map(|member| member.name()).filter(|name| !same.contains(name));
        if same.is_empty() { Vec::new() } else { others.map(str::to_owned).collect() }
    }

    /// Whether an executor says that a call changes nothing.
    async fn only_reads(&self, call: &ToolCall, context: &Context) -> bool {
        let request = self.plan(call, context);
        let tool = Some((context.profile, call.name.as_str()));
        let wish = Wish { not: &self.lost, tool, near: context.files(), once: false };
        let judged = async {
            loop {
                let asked = self.to.pool.ask(wish, |member| {
                    let request = traced(request.clone());
                    async move { member.client().plan(request).await }
                });
                match asked.await {
                    Err(status) if executors::is_lost(&status) && !executors::is_unsent(&status) => {
                        sleep(RETURN_PAUSE).await;
                    }
                    judged => return judged,
                }
            }
        };
        match timeout(ATTACH_TIME, judged).await {
            Ok(Ok((plan, _))) => plan.into_inner().effect() != EffectClass::Mutation && self.grant.is_empty(),
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Looks for it where it was given to, and then at all others: executors change their addresses.
    async fn find(&mut self, executor: &str) -> Option<Streaming<ExecuteEvent>> {
        let members = self.to.pool.candidates();
        let (named, others): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.name() == executor);
        for some in [named, others] {
            let asked = some.into_iter().map(async |member| {
                let stream = self.attach_at(member.client(), 0).await.ok()?;
                Some((member.begin(), stream))
            });
            if let Some((member, stream)) = join_all(asked).await.into_iter().flatten().next() {
                self.at = Some(member);
                return Some(stream);
            }
        }
        None
    }

    async fn attach(&self, after_sequence: u64) -> Result<Streaming<ExecuteEvent>, Status> {
        match &self.at {
            Some(member) => self.attach_at(member.client(), after_sequence).await,
            None => Err(Status::not_found("no executor has it")),
        }
    }

    async fn attach_at(
        &self,
        mut client: Client,
        after_sequence: u64,
    ) -> Result<Streaming<ExecuteEvent>, Status> {
        let request = executor::AttachRequest {
            caller: Some(self.caller.clone()),
            execution_id: self.id.clone(),
            after_sequence,
            ..executor::AttachRequest::default()
        };
        match timeout(ATTACH_TIME, client.attach(traced(request))).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(silent()),
        }
    }

    /// Passes on what it prints and asks until it ends. `seen` is the last sequence number that was passed on.
    async fn follow(
        &self,
        events: &mut Streaming<ExecuteEvent>,
        output: &mut Output,
        seen: &mut u64,
    ) -> Result<executor::Finished, Status> {
        loop {
            let event = timeout(SILENCE, events.message()).await.map_err(|_| silent())??;
            let Some(event) = event else {
                return Err(Status::unavailable("its stream ended without a result"));
            };
            *seen = event.sequence.max(*seen);
            match event.kind {
                Some(Kind::Output(chunk)) => {
                    let stream = OutputStream::try_from(chunk.stream())
                        .map_err(|malformed| Status::internal(malformed.to_string()))?;
                    output.pass(stream, chunk).await;
                }
                Some(Kind::HostCall(call)) => {
                    let Some(client) = self.at.as_ref().map(|member| member.client()) else { continue };
                    let question = Question::new(&client, self.caller.clone(), self.id.clone(), call);
                    if let Err(unheard) = output.questions.send(question).await {
                        unheard.0.answerer.give(Err("nobody answers questions here".to_owned())).await;
                    }
                }
                Some(Kind::Finished(finished)) => return Ok(finished),
                Some(Kind::Accepted(accepted)) => self.accepted(&accepted.instance).await,
                Some(Kind::Heartbeat(_)) | None => {}
            }
        }
    }

    /// A process has taken it, and has the session's files from then on.
    async fn accepted(&self, instance: &str) {
        let (Some(home), Some(member)) = (&self.home, &self.at) else { return };
        home.moves_to(instance);
        if member.instance() != instance {
            member.is(instance);
            self.note_home(home).await;
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if self.ended || self.leaving.is_cancelled() {
            return;
        }
        let Some(mut client) = self.at.as_ref().map(|member| member.client()) else { return };
        let request = executor::CancelRequest {
            caller: Some(self.caller.clone()),
            execution_id: std::mem::take(&mut self.id),
        };
        // Bounded by its own deadline; nobody waits for it.
        tokio::spawn(async move {
            if timeout(CANCEL_TIME, client.cancel(traced(request))).await.is_err() {
                tracing::warn!("an executor did not confirm a cancellation");
            }
        });
    }
}

/// What the model reads of a call that did not run to its end.
fn not_run(status: &Status, seen: u64) -> ToolResult {
    let text = status.message();
    ToolResult::error(if seen > 0 {
        format!("The executor was lost while the tool ran, and its result with it: {text}")
    } else if executors::is_doubtful(status) {
        UNKNOWN.to_owned()
    } else {
        format!("The tool could not be run: {text}")
    })
}

/// Has it noted that a call goes to an executor.
async fn note(placings: &mpsc::Sender<Placing>, placement: Placement) -> Result<(), Status> {
    let (to, noted) = oneshot::channel();
    let over = || Status::aborted("the run has ended");
    placings.send(Placing { placement, noted: to }).await.map_err(|_| over())?;
    noted.await.map_err(|_| over())
}

/// What a person was shown who allowed a call. Whether that counts is for the executor to say.
fn shown(grant: &[u8]) -> Option<executor::ExactScope> {
    let signed = executor::SignedGrant::decode(grant).ok()?;
    match executor::Grant::decode(signed.grant.as_ref()).ok()?.scope? {
        executor::grant::Scope::Exact(exact) => Some(exact),
        executor::grant::Scope::Standing(_) => None,
    }
}

fn silent() -> Status {
    Status::deadline_exceeded("it said nothing for too long")
}

/// The same call of the same run is the same execution, whoever asks for it and how often.
fn execution_id(run: &RunId, call: &CallId) -> String {
    format!("{run}/{call}")
}
