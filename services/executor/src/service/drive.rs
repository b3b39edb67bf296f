//! Takes one execution from its admission to its end.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::join_all;
use runtime::telemetry::Counted;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;
use wire::executor::{Ending, Finished, ToolStatus};

use super::{execution::Execution, plan};
use crate::{
    process::{Capture, Exit, Launcher, Outcome},
    tools::{Callable, Decision, Presentation, Remote, Run, Settings, Work},
};

/// Calls that wait for their turn.
const WAITING: &str = "sleuth_executions_waiting";
/// Calls that run.
const RUNNING: &str = "sleuth_executions_running";

/// What all executions share.
#[derive(Debug)]
pub(super) struct Workshop {
    pub(super) settings: Arc<Settings>,
    pub(super) launcher: Launcher,
    pub(super) output_bytes: usize,
    pub(super) orphan_grace: Duration,
    /// A place for each execution that may run at the same time.
    pub(super) places: Semaphore,
}

/// Why an execution was stopped from here.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// The tool's own time is up.
    TooSlow(Duration),
    /// The run's time is up.
    RunOver(Duration),
    Cancelled,
    /// Nobody reads it any more.
    Orphaned(Duration),
}

impl Stop {
    fn ending(self) -> Ending {
        match self {
            Self::TooSlow(_) | Self::RunOver(_) => Ending::TimedOut,
            Self::Cancelled | Self::Orphaned(_) => Ending::Cancelled,
        }
    }

    fn error(self, invocation: &str) -> String {
        match self {
            Self::TooSlow(time) => {
                format!("Error: Command '{invocation}' timed out after {} seconds.", time.as_secs())
            }
            Self::RunOver(time) => format!(
                "Error: Command '{invocation}' was stopped after {:.1} seconds, because the time of the whole run is up.",
                time.as_secs_f64()
            ),
            Self::Cancelled => format!("Error: Command '{invocation}' was cancelled."),
            Self::Orphaned(grace) => format!(
                "Error: Command '{invocation}' was cancelled, because nobody had read its output for {} seconds.",
                grace.as_secs()
            ),
        }
    }
}

impl Workshop {
    /// Plans and runs a call, and says how it ended. `run_time` is what the run has left.
    pub(super) async fn drive(
        &self,
        execution: &Execution,
        tool: &Callable,
        run_time: Option<Duration>,
    ) -> Finished {
        let plan = plan(tool, &self.settings, &execution.call.arguments_json).await;
        let finished = match plan.decision {
            Decision::Ask(reason) | Decision::Deny(reason) => {
                let refused = Presentation::Error { data: String::new(), error: reason };
                Finished { invocation: plan.description, ..finished(refused, Ending::Refused) }
            }
            Decision::Allow(Work::Answer(answer)) => finished(answer, Ending::Answered),
            Decision::Allow(Work::Run(run)) => self.run(execution, run, run_time).await,
            Decision::Allow(Work::Remote(remote)) => self.ask(execution, remote, run_time).await,
        };
        Finished { elapsed: execution.started.elapsed().try_into().ok(), ..finished }
    }

    /// Why an execution has to stop, once it has to.
    async fn stopped(&self, execution: &Execution, run_time: Option<Duration>) -> Stop {
        tokio::select! {
            () = execution.cancel.cancelled() => Stop::Cancelled,
            () = execution.orphaned(self.orphan_grace) => Stop::Orphaned(self.orphan_grace),
            time = over(run_time) => Stop::RunOver(time),
        }
    }

    /// Has another server do the work.
    async fn ask(&self, execution: &Execution, remote: Remote, run_time: Option<Duration>) -> Finished {
        let Remote { invocation, timeout: time, answer } = remote;
        let mut stopped = pin!(self.stopped(execution, run_time));
        let _place = tokio::select! {
            biased;
            stop = &mut stopped => return never_ran(&invocation, stop),
            place = self.places.acquire() => place,
        };
        let stop = tokio::select! {
            answer = timeout(time, answer) => match answer {
                Ok(answer) => return Finished { invocation, ..self.shortened(answer) },
                Err(_) => Stop::TooSlow(time),
            },
            stop = stopped => stop,
        };
        let error = Presentation::Error { data: String::new(), error: stop.error(&invocation) };
        Finished { invocation, ..finished(error, stop.ending()) }
    }

    fn shortened(&self, answer: Presentation) -> Finished {
        let mut kept = Capture::new(self.output_bytes);
        let answered = finished(answer, Ending::Answered);
        kept.push(answered.data.as_bytes());
        Finished { data: kept.text(), total_bytes: kept.total(), omitted_bytes: kept.omitted(), ..answered }
    }

    async fn run(&self, execution: &Execution, run: Run, run_time: Option<Duration>) -> Finished {
        let mut stopped = pin!(self.stopped(execution, run_time));

        let waiting = Counted::new(WAITING);
        let place = tokio::select! {
            biased;
            stop = &mut stopped => return never_ran(&run.invocation, stop),
            place = self.places.acquire() => place,
        };
        drop(waiting);
        let _running = Counted::new(RUNNING);
        let kill = CancellationToken::new();
        let launched = run.specs.iter().map(|spec| {
            let seen = |source, offset, bytes: &[u8]| execution.output(source, offset, bytes);
            self.launcher.run(spec, self.output_bytes, &kill, seen)
        });
        let (outcomes, stop) = {
            let mut running = pin!(join_all(launched));
            let stopped = timeout(run.timeout, stopped);
            tokio::select! {
                outcomes = &mut running => (outcomes, None),
                stop = stopped => {
                    kill.cancel();
                    (running.await, Some(stop.unwrap_or(Stop::TooSlow(run.timeout))))
                }
            }
        };
        drop(place);
        ended(run, &outcomes, stop)
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

fn finished(presentation: Presentation, ending: Ending) -> Finished {
    let (status, data, error) = match presentation {
        Presentation::Success(data) => (ToolStatus::Success, data, String::new()),
        Presentation::NoData(data) => (ToolStatus::NoData, data, String::new()),
        Presentation::Error { data, error } => (ToolStatus::Error, data, error),
    };
    Finished { status: status.into(), data, error, ending: ending.into(), ..Finished::default() }
}

fn never_ran(invocation: &str, stop: Stop) -> Finished {
    let error = format!("{} It was still waiting for its turn.", stop.error(invocation));
    let presentation = Presentation::Error { data: String::new(), error };
    Finished { invocation: invocation.to_owned(), ..finished(presentation, stop.ending()) }
}

fn ended(run: Run, outcomes: &[Outcome], stop: Option<Stop>) -> Finished {
    let total_bytes = outcomes.iter().map(|outcome| outcome.stdout.total() + outcome.stderr.total()).sum();
    let omitted_bytes =
        outcomes.iter().map(|outcome| outcome.stdout.omitted() + outcome.stderr.omitted()).sum();
    let (own_ending, exit_code) = ending(outcomes);
    let presentation = (run.present)(outcomes);
    let finished = match stop {
        None => Finished { exit_code, ..finished(presentation, own_ending) },
        Some(stop) => {
            let data = match presentation {
                _ if total_bytes == 0 => String::new(),
                Presentation::Success(data)
                | Presentation::NoData(data)
                | Presentation::Error { data, .. } => data,
            };
            finished(Presentation::Error { data, error: stop.error(&run.invocation) }, stop.ending())
        }
    };
    Finished { invocation: run.invocation, total_bytes, omitted_bytes, ..finished }
}

/// How the first program that failed ended, or else the last one.
fn ending(outcomes: &[Outcome]) -> (Ending, Option<i32>) {
    let exits = || outcomes.iter().flat_map(|outcome| &outcome.exits);
    let failed = exits().find(|exit| !matches!(exit, Exit::Exited(0) | Exit::Signalled(13)));
    match failed.or_else(|| exits().last()) {
        Some(Exit::Exited(code)) => (Ending::Exited, Some(*code)),
        Some(Exit::Signalled(_)) => (Ending::Signalled, None),
        Some(Exit::NotStarted(_)) | None => (Ending::NotStarted, None),
    }
}
