//! The tools: what a model may call, and what each call runs.
//!
//! A tool is data and two functions: one plans a call, the other presents what came of it. Nothing here starts a
//! process.

use std::{sync::Arc, time::Duration};

use domain::Rule;
use futures_util::future::BoxFuture;
use wire::executor::{InlineImage, WrittenFile};

use crate::{
    alerts::Alerts,
    policy::{Effect, Policy, Prefix},
    process::{Outcome, Spec},
    sandbox::View,
    source::Source,
    workspace::{Session, Workspace, Workspaces},
};

mod alerts;
mod bash;
mod callable;
mod headers;
mod kubectl;
mod logs;
mod parameters;
mod pod_logs;
mod present;
mod profile;
mod prometheus;
mod query;
mod repl;
mod todo;
mod toolset;
mod workspace;

pub(crate) use callable::{Callable, Origin};
pub(crate) use headers::{RequestHeaders, credential};
pub(crate) use parameters::Arguments;
pub(crate) use present::{command_line, plain};
pub(crate) use profile::{Profile, UnknownProfile};
pub(crate) use toolset::{Needs, Toolset};

use parameters::Parameter;

/// A tool as it is declared.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) toolset: Toolset,
    /// Whether it needs jq beside what its toolset needs.
    pub(crate) needs_jq: bool,
    /// For the model.
    pub(crate) description: &'static str,
    parameters: &'static [Parameter],
    /// Plans a call, or says what is wrong with its arguments. May block for some milliseconds.
    plan: fn(&Settings, &Arguments) -> Result<Plan, String>,
}

/// What tools need to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) bash: String,
    pub(crate) kubectl: String,
    pub(crate) jq: String,
    pub(crate) policy: Policy,
    /// What a person has allowed already.
    pub(crate) saved: Saved,
    /// What bash commands see of the machine.
    pub(crate) view: View,
    pub(crate) kubectl_timeout: Duration,
    pub(crate) bash_timeout: Duration,
    pub(crate) longest_timeout: Duration,
    /// Where alerts are known, if anywhere.
    pub(crate) alerts: Option<Alerts>,
    /// Where metrics are, if anywhere.
    pub(crate) prometheus: Option<Source>,
    /// What the request of whoever asks brings along.
    pub(crate) headers: RequestHeaders,
    pub(crate) site: Site,
}

/// Where the session of a call keeps its files.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) session: Session,
}

impl Site {
    /// The workspace, or why there is none. May block.
    fn open(&self) -> Result<Arc<Workspace>, String> {
        self.workspaces.open(&self.session).map_err(|error| error.to_string())
    }
}

/// What a person has allowed for the calls of a tool in a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saved {
    /// Beginnings of commands, where it runs commands.
    pub(crate) commands: Vec<Prefix>,
    /// Whether all calls are.
    pub(crate) whole: bool,
    /// Calls by patterns.
    pub(crate) rules: Vec<Rule>,
}

impl Saved {
    /// A plan, after which nobody is asked about what a rule allows.
    pub(crate) fn lift(&self, plan: Plan, tool: &str, arguments_json: &str) -> Plan {
        let Plan { description, effect, decision } = plan;
        let decision = match decision {
            Decision::Ask(ask) if self.covers(tool, arguments_json) => Decision::Allow(ask.work),
            Decision::Ask(_) | Decision::Allow(_) | Decision::Deny(_) => decision,
        };
        Plan { description, effect, decision }
    }

    fn covers(&self, tool: &str, arguments_json: &str) -> bool {
        wire::parameters(arguments_json)
            .is_some_and(|parameters| self.rules.iter().any(|rule| rule.allows(tool, &parameters)))
    }
}

impl Work {
    /// What it does, as a person would write it. Empty if it does nothing.
    pub(crate) fn invocation(&self) -> &str {
        match self {
            Self::Answer(_) | Self::Evaluate(_) => "",
            Self::Run(run) => &run.invocation,
            Self::Remote(remote) => &remote.invocation,
        }
    }
}

/// A call as it is understood.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What would run, in one line.
    pub(crate) description: String,
    pub(crate) effect: Effect,
    pub(crate) decision: Decision,
}

/// Whether a call runs, and how.
#[derive(Debug)]
pub(crate) enum Decision {
    Allow(Work),
    /// Only with the approval of a person.
    Ask(Ask),
    /// It does not, for this reason.
    Deny(String),
}

/// A call that a person must allow.
#[derive(Debug)]
pub(crate) struct Ask {
    /// Why, for the person.
    pub(crate) reason: String,
    /// What the model is told where nobody can be asked.
    pub(crate) refusal: String,
    /// Prefixes that would allow a part of it, also later.
    pub(crate) prefixes: Vec<String>,
    pub(crate) work: Work,
}

/// What a call does.
#[derive(Debug)]
pub(crate) enum Work {
    /// The answer is known without running anything.
    Answer(Presentation),
    Run(Run),
    /// Someone else does it.
    Remote(Remote),
    /// An interpreter does it.
    Evaluate(Evaluation),
}

/// Work of an interpreter.
#[derive(Debug)]
pub(crate) struct Evaluation {
    pub(crate) code: String,
}

/// Work of another server, or on files of a session.
pub(crate) struct Remote {
    /// The call, as a person would write it.
    pub(crate) invocation: String,
    pub(crate) timeout: Duration,
    /// Ends the call when it is dropped.
    pub(crate) answer: BoxFuture<'static, Presentation>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("invocation", &self.invocation).finish_non_exhaustive()
    }
}

/// Programs to run, and how to show what they say.
pub(crate) struct Run {
    /// The command, as a person would write it.
    pub(crate) invocation: String,
    /// What to run, side by side.
    pub(crate) specs: Vec<Spec>,
    /// Whether these reach clusters through the executor.
    pub(crate) clusters: bool,
    /// The files that they may change.
    pub(crate) workspace: Option<Arc<Workspace>>,
    pub(crate) timeout: Duration,
    pub(crate) present: Present,
}

/// Turns the outcomes, one for each spec, into the result.
pub(crate) type Present = Box<dyn FnOnce(&[Outcome]) -> Presentation + Send>;

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("specs", &self.specs)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A result as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Presentation {
    Success(String),
    /// The same, with images.
    Pictures {
        data: String,
        images: Vec<InlineImage>,
    },
    /// It worked and found nothing.
    NoData(String),
    Error {
        data: String,
        error: String,
    },
    /// It worked on files of the session, all the way or up to an error.
    Files {
        data: String,
        error: Option<String>,
        written: Vec<WrittenFile>,
    },
}

impl Tool {
    /// Plans a call. What is wrong with it is part of the plan, so that the model can correct itself.
    pub(crate) fn plan(&self, settings: &Settings, arguments_json: &str) -> Plan {
        Arguments::parse(arguments_json, self.parameters)
            .and_then(|arguments| (self.plan)(settings, &arguments))
            .unwrap_or_else(|reason| Plan {
                description: self.name.to_owned(),
                effect: Effect::Read,
                decision: Decision::Deny(format!("refused: {reason}")),
            })
    }

    /// The JSON Schema of its arguments.
    pub(crate) fn schema(&self) -> serde_json::Value {
        parameters::schema(self.parameters)
    }
}

/// All tools, in the order in which they are listed.
pub(crate) fn all() -> impl Iterator<Item = &'static Tool> {
    let holmes =
        [bash::TOOLS, kubectl::TOOLS, query::TOOLS, logs::TOOLS, pod_logs::TOOLS, alerts::TOOLS, todo::TOOLS];
    holmes.into_iter().chain([prometheus::TOOLS, workspace::TOOLS, repl::TOOLS]).flatten()
}
