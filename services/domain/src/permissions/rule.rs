//! One rule, and what calls it covers.

use std::collections::BTreeMap;

use super::{
    Parameters,
    glob::{Glob, Match, ends_line, escaped},
    patch,
};

/// Tools whose parameters a shell reads.
const SHELLS: [&str; 2] = ["bash", "exec"];
/// The parameter of theirs that it reads.
const COMMAND: &str = "command";
/// The tool that starts agents, whose calls are judged on their own.
const AGENT: &str = "agent";

/// A tool and, by name, patterns for its parameters. Parameters that it does not name may be anything. Of a patch, a
/// pattern means the files that it touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Name of the tool.
    pub tool: String,
    /// A pattern for each parameter.
    pub parameters: BTreeMap<String, String>,
}

impl Rule {
    /// The rule that allows calls like this one, as a person means it who says "always".
    pub fn like(tool: &str, parameters: &Parameters) -> Self {
        let counts = |name: &str| tool != AGENT && (!SHELLS.contains(&tool) || name == COMMAND);
        let patterns = parameters.iter().filter(|(name, _)| counts(name));
        let patterns = patterns.map(|(name, value)| (name.clone(), like(tool, value)));
        Self { tool: tool.to_owned(), parameters: patterns.collect() }
    }

    /// The first parameter whose pattern has a form that is not known, or is too long.
    pub fn unknown(&self) -> Option<&str> {
        let unknown = |(_, pattern): &(&String, &String)| !Glob::new(pattern).is_known();
        self.parameters.iter().find(unknown).map(|(name, _)| name.as_str())
    }

    /// Whether it denies a call: also where nobody can tell whether it speaks of it.
    pub fn denies(&self, tool: &str, parameters: &Parameters) -> bool {
        self.speaks_of(tool, parameters, |glob, value| match tool {
            patch::NAME => {
                glob.spells(value) || patch::files(value).any(|file| patch::fits(glob, file) != Match::No)
            }
            _ => glob.matches(value) != Match::No,
        })
    }

    /// Whether it lets a call run: what a shell takes apart is never covered by a wildcard, of a patch all files must be.
    pub fn allows(&self, tool: &str, parameters: &Parameters) -> bool {
        let covers = |glob: &Glob, value: &str| match tool {
            patch::NAME => {
                let mut files = patch::files(value).peekable();
                files.peek().is_some() && files.all(|file| patch::fits(glob, file) == Match::Yes)
            }
            _ if SHELLS.contains(&tool) && has_control_syntax(value) => false,
            _ => glob.matches(value) == Match::Yes,
        };
        self.speaks_of(tool, parameters, |glob, value| glob.spells(value) || covers(glob, value))
    }

    fn speaks_of(&self, tool: &str, parameters: &Parameters, fits: impl Fn(&Glob, &str) -> bool) -> bool {
        self.tool == tool
            && self.parameters.iter().all(|(name, pattern)| {
                parameters.get(name).is_some_and(|value| fits(&Glob::new(pattern), value))
            })
    }
}

/// A pattern for values like this one.
fn like(tool: &str, value: &str) -> String {
    match value.split_once(' ') {
        _ if tool == patch::NAME => patch::around(value).unwrap_or_else(|| escaped(value)),
        // No wildcard goes beyond the end of a line.
        Some((word, _)) if !value.contains(ends_line) => format!("{} **", escaped(word)),
        Some(_) | None => escaped(value),
    }
}

/// Whether a shell would see more than one simple command.
fn has_control_syntax(command: &str) -> bool {
    command.contains([';', '&', '|', '`', '<', '>', '\n', '\r', '(']) || command.contains("${")
}
