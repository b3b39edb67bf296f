//! What a person sees. Whatever came from outside is made harmless for a terminal first.

mod harmless;
mod markdown;
mod progress;
mod table;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

pub(crate) use harmless::harmless;
pub(crate) use markdown::print_answer;
pub(crate) use progress::Progress;
pub(crate) use table::Table;

/// Prints a line on standard output.
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{}", harmless(line))?)
}

/// Prints JSON on standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(value)?)?)
}

/// Prints a table on standard output.
pub(crate) fn print_table<const N: usize>(table: &Table<N>) -> anyhow::Result<()> {
    Ok(write!(std::io::stdout(), "{}", harmless(&table.to_string()))?)
}

/// The exit code of a program that a closed pipe ended, as shells know it: 128 and the number of SIGPIPE.
const NOBODY_READS: u8 = 141;

/// Prints what went wrong on standard error; nothing if it is only that nobody reads on, as after `| head`.
pub(crate) fn print_error(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::from(NOBODY_READS);
    }
    let text = match error.downcast_ref::<tonic::Status>() {
        Some(status) => status.message().to_owned(),
        None => format!("{error:#}"),
    };
    // Where standard error is gone, the exit code still tells.
    let _ = writeln!(std::io::stderr(), "sleuth: {}", harmless(&text));
    ExitCode::FAILURE
}
