//! One rule, and what calls it covers.

use std::collections::BTreeMap;

use super::{
    Parameters,
    glob::{Glob, Match, escaped},
};

/// Tools whose parameters a shell reads.
const SHELLS: [&str; 2] = ["bash", "exec"];
/// The parameter of theirs that it reads.
const COMMAND: &str = "command";

/// A tool and, by name, patterns for its parameters. Parameters that it does not name may be anything.
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
        let counts = |name: &str| !SHELLS.contains(&tool) || name == COMMAND;
        let patterns = parameters.iter().filter(|(name, _)| counts(name)).map(|(name, value)| {
            let pattern = match value.split_once(' ') {
                Some((word, _)) => format!("{} **", escaped(word)),
                None => escaped(value),
            };
            (name.clone(), pattern)
        });
        Self { tool: tool.to_owned(), parameters: patterns.collect() }
    }

    /// The first parameter whose pattern has a form that is not known, or is too long.
    pub fn unknown(&self) -> Option<&str> {
        let unknown = |(_, pattern): &(&String, &String)| !Glob::new(pattern).is_known();
        self.parameters.iter().find(unknown).map(|(name, _)| name.as_str())
    }

    /// Whether it denies a call: also where nobody can tell whether it speaks of it.
    pub fn denies(&self, tool: &str, parameters: &Parameters) -> bool {
        self.speaks_of(tool, parameters, |glob, value| glob.matches(value) != Match::No)
    }

    /// Whether it lets a call run: what a shell takes apart is never covered by a wildcard.
    pub fn allows(&self, tool: &str, parameters: &Parameters) -> bool {
        let shell = SHELLS.contains(&tool);
        self.speaks_of(tool, parameters, |glob, value| {
            glob.spells(value) || (glob.matches(value) == Match::Yes && !(shell && has_control_syntax(value)))
        })
    }

    fn speaks_of(&self, tool: &str, parameters: &Parameters, fits: impl Fn(&Glob, &str) -> bool) -> bool {
        self.tool == tool
            && self.parameters.iter().all(|(name, pattern)| {
                parameters.get(name).is_some_and(|value| fits(&Glob::new(pattern), value))
            })
    }
}

/// Whether a shell would see more than one simple command.
fn has_control_syntax(command: &str) -> bool {
    command.contains([';', '&', '|', '`', '<', '>', '\n', '\r', '(']) || command.contains("${")
}
