//! From what happened to the one end of an execution.

use std::time::Duration;

use wire::executor::{Clock, Ending, Finished, StreamSummary, ToolStatus};

use super::{
    execution::stream,
    records::{Begun, Ended},
    stop::Stop,
};
use crate::{
    process::{Exit, Outcome, Source, Trouble},
    tools::{Presentation, Run},
};

/// An end with a result.
pub(super) fn finished(presentation: Presentation, ending: Ending) -> Finished {
    let ended = |status: ToolStatus, data| Finished {
        status: status.into(),
        data,
        ending: ending.into(),
        ..Finished::default()
    };
    match presentation {
        Presentation::Success(data) => ended(ToolStatus::Success, data),
        Presentation::Pictures { data, images } => Finished { images, ..ended(ToolStatus::Success, data) },
        Presentation::NoData(data) => ended(ToolStatus::NoData, data),
        Presentation::Error { data, error } => Finished { error, ..ended(ToolStatus::Error, data) },
        Presentation::Files { data, error, written } => {
            let status = if error.is_some() { ToolStatus::Error } else { ToolStatus::Success };
            Finished { error: error.unwrap_or_default(), written, ..ended(status, data) }
        }
    }
}

/// An end without output.
pub(super) fn failed(invocation: &str, error: String, ending: Ending) -> Finished {
    let error = Presentation::Error { data: String::new(), error };
    Finished { invocation: invocation.to_owned(), ..finished(error, ending) }
}

/// It was stopped before anything of it ran.
pub(super) fn never_ran(invocation: &str, stop: Stop) -> Finished {
    let error = match stop {
        Stop::Queued(_) => stop.error(invocation),
        _ => format!("{} It was still waiting for its turn.", stop.error(invocation)),
    };
    Finished { clock: stop.clock().into(), ..failed(invocation, error, stop.ending()) }
}

/// Another executor, or this one before it forgot, began it. It is not begun again.
pub(super) fn begun_before(begun: &Begun) -> Finished {
    let since = if begun.at.is_empty() { String::new() } else { format!(" at {}", begun.at) };
    match &begun.ended {
        Some(Ended { ending, exit_code }) => {
            let code = exit_code.map(|code| format!(" with code {code}")).unwrap_or_default();
            let error = format!(
                "Error: This call was begun{since} and has ended{code}; what it printed is lost. It was not run again."
            );
            let ending = Ending::try_from(*ending).unwrap_or(Ending::Unknown);
            Finished { exit_code: *exit_code, ..failed("", error, ending) }
        }
        None => failed(
            "",
            outcome_unknown(&format!("It was begun{since}, and its executor was lost.")),
            Ending::Unknown,
        ),
    }
}

/// The executor failed while it ran.
pub(super) fn broken() -> Finished {
    failed("", outcome_unknown("The executor failed while it ran."), Ending::Unknown)
}

fn outcome_unknown(why: &str) -> String {
    format!(
        "Error: Outcome unknown: {why} It may have changed something, in part or in full. It was not run again: look \
         at the state before you do anything."
    )
}

/// What came of programs that were run.
pub(super) fn ended(run: Run, outcomes: &[Outcome], stop: Option<Stop>, may_change: bool) -> Finished {
    let omitted_bytes =
        outcomes.iter().map(|outcome| outcome.stdout.omitted() + outcome.stderr.omitted()).sum();
    let streams = streams(outcomes);
    let total_bytes = streams.iter().map(|stream| stream.bytes).sum();
    let presentation = (run.present)(outcomes);
    let finished = match stop {
        None => by_itself(&run.invocation, presentation, outcomes, may_change),
        Some(stop) => {
            let data = if total_bytes == 0 { String::new() } else { data_of(presentation) };
            let error = Presentation::Error { data, error: stop.error(&run.invocation) };
            Finished { clock: stop.clock().into(), ..finished(error, stop.ending()) }
        }
    };
    let redacted_spans = outcomes.iter().map(|outcome| outcome.masked).sum();
    let weakest = outcomes.iter().min_by_key(|outcome| outcome.level);
    Finished {
        invocation: run.invocation,
        total_bytes,
        omitted_bytes,
        streams,
        redacted_spans,
        sandbox: weakest.map(|outcome| outcome.level.to_string()).unwrap_or_default(),
        sandbox_layers: weakest.map(layers).unwrap_or_default(),
        ..finished
    }
}

fn layers(outcome: &Outcome) -> Vec<String> {
    outcome.layers.iter().map(|layer| (*layer).to_owned()).collect()
}

fn by_itself(
    invocation: &str,
    presentation: Presentation,
    outcomes: &[Outcome],
    may_change: bool,
) -> Finished {
    let (own_ending, exit_code) = ending(outcomes);
    let failed = |presentation, error, ending| {
        finished(Presentation::Error { data: data_of(presentation), error }, ending)
    };
    match outcomes.iter().find_map(|outcome| outcome.trouble) {
        Some(Trouble::Late(time)) => {
            let error = format!("Error: Command '{invocation}' did not start in {} seconds.", time.as_secs());
            Finished { clock: Clock::Start.into(), ..failed(presentation, error, Ending::TimedOut) }
        }
        Some(Trouble::Lost) if may_change => {
            let error = outcome_unknown(&format!("The process that ran '{invocation}' was lost."));
            failed(presentation, error, Ending::Unknown)
        }
        Some(Trouble::Lost) if own_ending == Ending::NotStarted => finished(presentation, own_ending),
        Some(Trouble::Lost) => {
            let error =
                format!("Error: The process that ran '{invocation}' was lost: how it ended is not known.");
            failed(presentation, error, Ending::Lost)
        }
        // Of several programs, the last one may have ended well with what little it got.
        None if outcomes.iter().any(|outcome| outcome.out_of_memory) => {
            let error = format!(
                "Error: Command '{invocation}' ran out of memory, and what it printed is not all. Ask for less at a time."
            );
            Finished { exit_code, ..failed(presentation, error, Ending::OutOfMemory) }
        }
        None => Finished { exit_code, ..finished(presentation, own_ending) },
    }
}

fn data_of(presentation: Presentation) -> String {
    match presentation {
        Presentation::Success(data)
        | Presentation::Pictures { data, .. }
        | Presentation::NoData(data)
        | Presentation::Error { data, .. }
        | Presentation::Files { data, .. } => data,
    }
}

fn streams(outcomes: &[Outcome]) -> Vec<StreamSummary> {
    let mut streams = Vec::new();
    for (command, outcome) in outcomes.iter().enumerate() {
        for (source, capture) in [(Source::Stdout, &outcome.stdout), (Source::Stderr, &outcome.stderr)] {
            streams.push(StreamSummary {
                stream: stream(source).into(),
                command: u32::try_from(command).unwrap_or(u32::MAX),
                bytes: capture.total(),
                sha256: capture.sha256().into(),
            });
        }
    }
    streams
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

/// How long something took, for the contract.
pub(super) fn elapsed(time: Duration) -> Option<prost_types::Duration> {
    time.try_into().ok()
}
