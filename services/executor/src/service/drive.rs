//! Takes one execution from its admission to its end.

use std::{io, pin::Pin, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::join_all;
use runtime::telemetry::Counted;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use wire::executor::{Ending, Finished, Interpreter};

use super::{
    ending::{begun_before, elapsed, ended, failed, finished, never_ran},
    execution::Execution,
    executions::Key,
    judge::{Busy, Judge, Judged, PLAN_TIME, Standing},
    records::{Beginning, Begun, Records, on_disk},
    stop::Stop,
};
use crate::{
    cluster::{Access, Clusters, Writes},
    policy::Effect,
    process::{Capture, Launcher, Meter, Watch},
    redact::{Redactor, Suspicion},
    repl::Interpreters,
    tools::{Callable, Decision, Presentation, Remote, Run, Work},
    workspace::{Workspace, Workspaces},
};

/// Calls that wait for their turn.
const WAITING: &str = "sleuth_executions_waiting";
/// Calls that run.
const RUNNING: &str = "sleuth_executions_running";
/// Calls that may run at the same time.
const CAPACITY: &str = "sleuth_executions_capacity";
/// Time that calls waited for their turn.
const QUEUE_SECONDS: &str = "sleuth_execution_queue_seconds";

/// What all executions share.
#[derive(Debug)]
pub(super) struct Workshop {
    pub(super) judge: Judge,
    pub(super) records: Records,
    pub(super) redactor: Redactor,
    pub(super) launcher: Launcher,
    pub(super) interpreters: Arc<Interpreters>,
    pub(super) workspaces: Arc<Workspaces>,
    pub(super) clusters: Clusters,
    pub(super) instance: String,
    pub(super) limits: Limits,
    /// Cancelled when this executor ends what runs, because it ends itself.
    pub(super) leaving: CancellationToken,
    /// A place for each execution that may run at the same time.
    pub(super) places: Semaphore,
}

/// What an execution may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) output_kept: usize,
    pub(super) output: u64,
    pub(super) queue_time: Duration,
    pub(super) idle_time: Duration,
    pub(super) orphan_grace: Duration,
}

/// What comes along with a call.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) key: Key,
    pub(super) tool: Callable,
    /// The tool's own, which are those of the call but for where it goes.
    pub(super) arguments: String,
    /// A permission for exactly this call. May be empty.
    pub(super) grant: Bytes,
    pub(super) standing: Standing,
    /// For whom it reaches clusters.
    pub(super) access: Access,
    /// The interpreter that is to run it, if it is code.
    pub(super) interpreter: Option<Interpreter>,
    /// What the run has left.
    pub(super) run_time: Option<Duration>,
}

/// A call that may run.
pub(super) struct Permitted<'a> {
    pub(super) execution: &'a Execution,
    pub(super) order: &'a Order,
    /// Knows what whoever asks has sent along, too.
    pub(super) redactor: Redactor,
    effect: Effect,
}

impl Permitted<'_> {
    /// Whether it must never begin twice.
    fn may_change(&self) -> bool {
        self.effect == Effect::Mutation
    }

    /// What it may do in clusters: change them only if it was permitted as something that changes.
    fn access(&self) -> Access {
        let writes = if self.may_change() { Writes::Granted } else { Writes::Refused };
        Access { writes, ..self.order.access.clone() }
    }

    pub(super) fn suspicion(&self, invocation: &str) -> Suspicion {
        match self.effect {
            Effect::SensitiveRead => Suspicion::ReadsSecrets,
            Effect::Mutation if invocation.to_ascii_lowercase().contains("secret") => Suspicion::ReadsSecrets,
            Effect::Read | Effect::Mutation => Suspicion::Usual,
        }
    }
}

/// Places for calls that run at the same time.
pub(super) fn places(capacity: usize) -> Semaphore {
    metrics::gauge!(CAPACITY).set(u32::try_from(capacity).unwrap_or(u32::MAX));
    // Whoever looks before the first call sees that there is none.
    for gauge in [WAITING, RUNNING] {
        metrics::gauge!(gauge).increment(0.0);
    }
    Semaphore::new(capacity)
}

/// The right of a call to run now.
pub(super) struct Place<'a> {
    _permit: SemaphorePermit<'a>,
    _running: Counted,
}

impl Workshop {
    /// Judges and runs a call, and says how it ended.
    pub(super) async fn drive(&self, execution: &Execution, order: &Order) -> Finished {
        let finished = match self.begun(&order.key).await {
            Some(begun) => begun_before(&begun),
            None => self.judged(execution, order).await,
        };
        self.masked(Finished { elapsed: elapsed(execution.started.elapsed()), ..finished })
    }

    /// What is known of a call that may change something and was begun before.
    pub(super) async fn begun(&self, key: &Key) -> Option<Begun> {
        let (records, key) = (self.records.clone(), key.clone());
        on_disk(move || Ok::<_, io::Error>(records.begun(&key))).await.ok().flatten()
    }

    /// Without the secrets in its texts.
    pub(super) fn masked(&self, finished: Finished) -> Finished {
        let [data, error, invocation] = [&finished.data, &finished.error, &finished.invocation]
            .map(|text| self.redactor.text(text, Suspicion::Usual));
        let redacted_spans = finished.redacted_spans + data.spans + error.spans + invocation.spans;
        Finished {
            data: data.text,
            error: error.text,
            invocation: invocation.text,
            redacted_spans,
            ..finished
        }
    }

    async fn judged(&self, execution: &Execution, order: &Order) -> Finished {
        let judged = self.judge.judge(&order.tool, &order.arguments, &order.key.account, &order.standing);
        let Judged { plan, target, .. } = match judged.await {
            Ok(judged) => judged,
            Err(Busy) => return never_ran(&order.tool.name, Stop::Queued(PLAN_TIME)),
        };
        let refused = |reason| failed(&plan.description, reason, Ending::Refused);
        let redactor = match self.redactor.knowing(&order.standing.headers.secrets()) {
            Ok(redactor) => redactor,
            Err(error) => return refused(format!("refused: its output could not be shown: {error}")),
        };
        let work = match plan.decision {
            Decision::Allow(work) => work,
            Decision::Deny(reason) => return refused(reason),
            Decision::Ask(ask) if !self.judge.can_ask() => return refused(ask.refusal),
            Decision::Ask(ask) if order.grant.is_empty() => {
                return refused(format!("refused: {} It needs the approval of a person.", ask.reason));
            }
            Decision::Ask(ask) => {
                let grant = order.grant.clone();
                let (tool, arguments) = (&order.tool.name, &execution.call.arguments_json);
                match self.judge.take(grant, &order.key, tool, arguments, target, &self.records).await {
                    Ok(()) => ask.work,
                    Err(void) => {
                        return refused(format!(
                            "refused: The approval does not count: {void}. Nothing was run."
                        ));
                    }
                }
            }
        };
        let permitted = Permitted { execution, order, redactor, effect: plan.effect };
        let finished = match work {
            Work::Answer(answer) => return finished(answer, Ending::Answered),
            Work::Run(run) => self.run(&permitted, run).await,
            Work::Remote(remote) => self.ask(&permitted, remote).await,
            Work::Evaluate(evaluation) => self.evaluate(&permitted, evaluation).await,
        };
        if permitted.may_change() {
            self.note_end(&order.key, &finished).await;
        }
        finished
    }

    /// Why an execution has to stop, once it has to.
    pub(super) async fn stopped(&self, permitted: &Permitted<'_>) -> Stop {
        let grace = self.limits.orphan_grace;
        tokio::select! {
            () = permitted.execution.cancel.cancelled() => match self.leaving.is_cancelled() {
                true => Stop::Leaving { reads: !permitted.may_change() },
                false => Stop::Cancelled,
            },
            () = permitted.execution.orphaned(grace) => Stop::Orphaned(grace),
            time = over(permitted.order.run_time) => Stop::RunOver(time),
        }
    }

    /// Waits for a place, and notes that the call begins if it must not begin twice.
    async fn begin(
        &self,
        permitted: &Permitted<'_>,
        invocation: &str,
        stopped: Pin<&mut impl Future<Output = Stop>>,
    ) -> Result<Place<'_>, Box<Finished>> {
        let (waiting, asked) = (Counted::new(WAITING), Instant::now());
        let place = tokio::select! {
            biased;
            stop = stopped => return Err(never_ran(invocation, stop).into()),
            place = timeout(self.limits.queue_time, self.places.acquire()) => match place {
                Ok(Ok(permit)) => Place { _permit: permit, _running: Counted::new(RUNNING) },
                Ok(Err(_)) => return Err(never_ran(invocation, Stop::Cancelled).into()),
                Err(_) => return Err(never_ran(invocation, Stop::Queued(self.limits.queue_time)).into()),
            },
        };
        drop(waiting);
        metrics::histogram!(QUEUE_SECONDS).record(asked.elapsed());
        if !permitted.may_change() {
            return Ok(place);
        }
        let (records, key, instance) =
            (self.records.clone(), permitted.order.key.clone(), self.instance.clone());
        match on_disk(move || records.begin(&key, &instance)).await {
            Ok(Beginning::Noted) => Ok(place),
            Ok(Beginning::Before(begun)) => Err(begun_before(&begun).into()),
            Err(error) => {
                let reason = format!(
                    "refused: '{invocation}' may change something, and that it begins could not be noted \
                     (SLEUTH_EXECUTOR_STATE): {error}. Nothing was run."
                );
                Err(failed(invocation, reason, Ending::Refused).into())
            }
        }
    }

    async fn note_end(&self, key: &Key, finished: &Finished) {
        let (ending, exit_code) = (finished.ending(), finished.exit_code);
        if matches!(ending, Ending::Unknown | Ending::Refused) {
            return;
        }
        let (records, key) = (self.records.clone(), key.clone());
        match on_disk(move || records.end(&key, ending, exit_code)).await {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                tracing::warn!(%error, "how a call ended could not be noted");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Has another server do the work.
    async fn ask(&self, permitted: &Permitted<'_>, remote: Remote) -> Finished {
        let Remote { invocation, timeout: time, answer } = remote;
        let mut stopped = pin!(self.stopped(permitted));
        let _place = match self.begin(permitted, &invocation, stopped.as_mut()).await {
            Ok(place) => place,
            Err(finished) => return *finished,
        };
        let queued = elapsed(permitted.execution.started.elapsed());
        let stop = tokio::select! {
            answer = timeout(time, answer) => match answer {
                Ok(answer) => {
                    let answered = self.shortened(answer, &permitted.redactor);
                    return Finished { invocation, queued, ..answered };
                }
                Err(_) => Stop::TooSlow(time),
            },
            stop = stopped => stop,
        };
        let mut error = stop.error(&invocation);
        if permitted.may_change() {
            error += " Whether the server did what was asked is not known.";
        }
        Finished { queued, clock: stop.clock().into(), ..failed(&invocation, error, stop.ending()) }
    }

    /// What a server said.
    fn shortened(&self, answer: Presentation, redactor: &Redactor) -> Finished {
        let mut kept = Capture::new(self.limits.output_kept);
        let answered = finished(answer, Ending::Answered);
        let [data, error] =
            [&answered.data, &answered.error].map(|text| redactor.text(text, Suspicion::Usual));
        kept.push(data.text.as_bytes());
        Finished {
            data: kept.text(),
            total_bytes: kept.total(),
            omitted_bytes: kept.omitted(),
            error: error.text,
            redacted_spans: data.spans + error.spans,
            ..answered
        }
    }

    async fn run(&self, permitted: &Permitted<'_>, run: Run) -> Finished {
        let mut stopped = pin!(self.stopped(permitted));
        let place = match self.begin(permitted, &run.invocation, stopped.as_mut()).await {
            Ok(place) => place,
            Err(finished) => return *finished,
        };
        let queued = elapsed(permitted.execution.started.elapsed());
        let (kill, meter) = (CancellationToken::new(), Arc::new(Meter::new()));
        let suspicion = permitted.suspicion(&run.invocation);
        let launched = run.specs.iter().enumerate().map(|(command, spec)| {
            let seen = move |source, offset, bytes: &[u8]| {
                permitted.execution.output(command, source, offset, bytes);
            };
            let masker = Some(permitted.redactor.masker(suspicion));
            let watch = Watch { masker, meter: Some(Arc::clone(&meter)) };
            let clusters = run.clusters.then(|| permitted.access());
            self.launch(spec, clusters, &kill, watch, seen)
        });
        let deadline = Instant::now() + run.timeout;
        let (outcomes, stop) = {
            let mut running = pin!(join_all(launched));
            let stop = tokio::select! {
                outcomes = &mut running => Err(outcomes),
                stop = stopped => Ok(stop),
                () = tokio::time::sleep_until(deadline) => Ok(Stop::TooSlow(run.timeout)),
                () = meter.is_silent_for(self.limits.idle_time) => Ok(Stop::Silent(self.limits.idle_time)),
                () = meter.exceeds(self.limits.output) => Ok(Stop::TooMuch(self.limits.output)),
                quota = overflow(run.workspace.clone()) => Ok(Stop::Overflows(quota)),
            };
            match stop {
                Err(outcomes) => (outcomes, None),
                Ok(stop) => {
                    kill.cancel();
                    (running.await, Some(stop))
                }
            }
        };
        drop(place);
        Finished { queued, ..ended(run, &outcomes, stop, permitted.may_change()) }
    }
}

async fn overflow(workspace: Option<Arc<Workspace>>) -> u64 {
    match workspace {
        Some(workspace) => workspace.overflows().await,
        None => std::future::pending().await,
    }
}

async fn over(time: Option<Duration>) -> Duration {
    match time {
        Some(time) => {
            tokio::time::sleep(time).await;
            time
        }
        None => std::future::pending().await,
    }
}
