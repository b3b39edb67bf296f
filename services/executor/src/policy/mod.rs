//! What may run. Today a strict list of commands that only read; everything else is refused with a reason that
//! the model can act on.
//!
//! * `guard`, `parse`: from text to a script of literal commands, or a refusal
//! * `script`: such commands, and the text that runs
//! * `programs`, `kubectl`, `paths`, `options`: what each program may be told

use std::path::PathBuf;

mod guard;
mod kubectl;
mod options;
mod parse;
mod paths;
mod programs;
mod script;
#[cfg(test)]
mod tests;

pub(crate) use kubectl::check_kind;

use programs::Files;
use script::{Script, Simple};

/// Changes whenever the same call could be judged otherwise.
pub(crate) const VERSION: &str = "read-only-1";

/// Whether something may run. The stricter is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It may.
    Allow,
    /// A person may allow it.
    #[expect(
        dead_code,
        reason = "the order of verdicts is part of the interface; the rules have no such case"
    )]
    Ask,
    /// It never runs.
    Deny,
}

/// What a call can do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// It changes nothing and may run again.
    Read,
    /// It changes something.
    Mutation,
}

/// What the policy says of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    /// Why, unless it is allowed.
    pub(crate) reason: String,
    /// Prefixes that a person could allow for later commands.
    pub(crate) prefixes: Vec<String>,
    pub(crate) effect: Effect,
    /// The text to give to bash: the command as it was understood. `None` if it was not.
    pub(crate) script: Option<String>,
}

/// The rules of one executor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// Files that hold the cluster's credentials.
    pub(crate) kubeconfigs: Vec<PathBuf>,
}

impl Policy {
    /// Judges a bash command. Takes milliseconds for long ones: call it where blocking is fine.
    pub(crate) fn judge_bash(&self, command: &str) -> Judgement {
        match parse::script(command) {
            Ok(script) => match self.check(&script) {
                Ok(()) => Judgement {
                    verdict: Verdict::Allow,
                    reason: String::new(),
                    prefixes: Vec::new(),
                    effect: Effect::Read,
                    script: Some(script.to_string()),
                },
                Err(reason) => deny(reason),
            },
            Err(refusal) => deny(names_root(command).map_or_else(|| refused(&refusal.to_string()), blocked)),
        }
    }

    fn check(&self, script: &Script) -> Result<(), String> {
        for command in script.commands() {
            let base = command.program.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
            if matches!(base.as_str(), "sudo" | "su") {
                return Err(blocked(&base));
            }
        }
        script.commands().try_for_each(|command| {
            self.check_command(command)
                .map_err(|reason| refused(&format!("`{}`: {reason}.", command.program)))
        })
    }

    fn check_command(&self, command: &Simple) -> Result<(), String> {
        let program =
            programs::find(&command.program).ok_or("it is not on the list of programs that only read")?;
        (program.check)(&options::texts(&command.arguments)?)?;
        if program.files == Files::Reads {
            command.arguments.iter().try_for_each(|word| paths::check(word, &self.kubeconfigs))?;
        }
        Ok(())
    }
}

fn deny(reason: String) -> Judgement {
    Judgement { verdict: Verdict::Deny, reason, prefixes: Vec::new(), effect: Effect::Mutation, script: None }
}

fn refused(why: &str) -> String {
    format!(
        "refused: {why} Only read-only commands run on this server: programs such as kubectl (get, describe, logs, \
         top, events), grep, jq, cat, ls, find, ps, df, ss, journalctl and systemctl status, joined by |, &&, || \
         and ;, without substitutions, variables, loops or redirections to files."
    )
}

fn blocked(program: &str) -> String {
    format!("Command blocked: `{program}` never runs on this server, whatever is allowed otherwise.")
}

/// Whether a command that was not understood names a program that is always blocked.
fn names_root(command: &str) -> Option<&'static str> {
    let words = || command.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
    ["sudo", "su"].into_iter().find(|name| words().any(|word| word.eq_ignore_ascii_case(name)))
}
