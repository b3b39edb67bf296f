//! How outcomes of programs become results.

use super::Presentation;
use crate::process::{Exit, Outcome};

/// The error of a pipeline, if it failed. A program that a later one stopped reading from has not failed.
pub(super) fn failure(command: &str, outcome: &Outcome) -> Option<String> {
    let last = outcome.exits.len().saturating_sub(1);
    outcome.exits.iter().enumerate().find_map(|(index, exit)| match exit {
        Exit::Exited(0) => None,
        Exit::Signalled(SIGPIPE) if index < last => None,
        Exit::Exited(137) | Exit::Signalled(9) => Some(format!(
            "[OOM] Error: Command \"{command}\" was killed, most likely because it used too much memory. Ask for \
             less: one namespace instead of all, a label selector, fewer columns."
        )),
        Exit::Exited(code) => Some(format!("Error: Command \"{command}\" returned non-zero exit status {code}")),
        Exit::Signalled(signal) => Some(format!("Error: Command \"{command}\" was ended by signal {signal}")),
        Exit::NotStarted(why) => Some(format!("Error: Command \"{command}\" could not be started: {why}")),
    })
}

const SIGPIPE: i32 = 13;

/// Standard output, then standard error.
pub(super) fn both(outcome: &Outcome) -> String {
    let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
    match (stdout.trim_end(), stderr.trim_end()) {
        (stdout, "") => stdout.to_owned(),
        ("", stderr) => stderr.to_owned(),
        (stdout, stderr) => format!("{stdout}\n{stderr}"),
    }
}

/// The result of one program whose output is shown as it is.
pub(crate) fn plain(command: &str, outcome: &Outcome) -> Presentation {
    let data = both(outcome);
    match failure(command, outcome) {
        Some(error) => Presentation::Error { data, error },
        None if outcome.stdout.text().trim().is_empty() => Presentation::NoData(data),
        None => Presentation::Success(data),
    }
}

/// Keeps the lines that `wanted` accepts, and the first, which is the heading of a table.
pub(super) fn filtered(table: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut lines = table.lines();
    let heading = lines.next()?;
    let mut found = lines.filter(|line| wanted(line)).peekable();
    found.peek()?;
    Some(std::iter::once(heading).chain(found).collect::<Vec<_>>().join("\n"))
}

/// A command line as one would type it.
pub(crate) fn command_line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted = arguments.into_iter().map(|argument| {
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.to_owned()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
