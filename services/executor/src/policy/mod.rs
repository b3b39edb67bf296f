//! What may run: unasked, with a person's permission, or never. The strictest verdict on any program of a command
//! counts.
//!
//! * `guard`, `parse`: from text to a script of literal commands, the only form that runs unasked
//! * `script`: such commands, and the text that runs
//! * `survey`: the programs of everything else, at any nesting, so that a person can be told
//! * `programs`, `kubectl`, `paths`, `options`: what each program may be told
//! * `rules`: what the operator adds
//! * `block`: what never runs

use std::{collections::BTreeSet, path::PathBuf};

mod block;
mod guard;
mod judge;
mod kubectl;
mod lifts;
mod objection;
mod options;
mod parse;
mod paths;
mod programs;
mod rules;
mod script;
#[cfg(test)]
mod second_opinion;
mod survey;
#[cfg(test)]
mod tests;

pub(crate) use kubectl::check_kind;
pub use lifts::Lifts;
pub use rules::BuiltinAllowlist;
pub(crate) use rules::{Prefix, Rules};

/// Changes whenever the same call could be judged otherwise.
pub(crate) const VERSION: &str = "read-only-3";

/// What a call can do to the world. The worse is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// It changes nothing and may run again.
    Read,
    /// It reads what may hold secrets.
    SensitiveRead,
    /// It changes something.
    Mutation,
}

/// What a command does, all its parts together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) effect: Effect,
    /// The same without kubectl, whose requests a proxy holds to what was permitted.
    pub(crate) on_machine: Effect,
    /// The names of the programs that are known to run.
    pub(crate) programs: BTreeSet<String>,
}

impl Footprint {
    /// Whether it may need the network, as what is not known to only read may: nobody can tell.
    pub(crate) fn may_reach_out(&self) -> bool {
        self.effect == Effect::Mutation
            && (self.programs.is_empty() || self.programs.iter().any(|name| programs::find(name).is_none()))
    }

    const NONE: Self = Self { effect: Effect::Read, on_machine: Effect::Read, programs: BTreeSet::new() };
    /// That of a command which could not be read.
    const UNKNOWN: Self =
        Self { effect: Effect::Mutation, on_machine: Effect::Mutation, programs: BTreeSet::new() };

    fn add(&mut self, program: &str, effect: Effect) {
        self.effect = self.effect.max(effect);
        if program != "kubectl" {
            self.on_machine = self.on_machine.max(effect);
        }
        self.programs.insert(program.to_owned());
    }
}

/// What the policy says of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It runs, as this text: the command as it was understood.
    Allow { script: String, footprint: Footprint },
    /// It runs if a person allows it.
    Ask {
        reason: String,
        footprint: Footprint,
        /// Those of the suggested prefixes that would have allowed a part of it.
        prefixes: Vec<String>,
    },
    /// It never runs.
    Deny { reason: String },
}

impl Judgement {
    /// What it can do to the world.
    pub(crate) fn effect(&self) -> Effect {
        match self {
            Self::Allow { footprint, .. } | Self::Ask { footprint, .. } => footprint.effect,
            Self::Deny { .. } => Effect::Mutation,
        }
    }
}

/// The rules of one executor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// Files that hold the cluster's credentials.
    pub(crate) kubeconfigs: Vec<PathBuf>,
    pub(crate) rules: Rules,
}
