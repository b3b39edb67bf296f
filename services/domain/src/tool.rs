//! Tool calls from the run's point of view: what is planned, and what came of it.

use std::{collections::BTreeMap, time::Duration};

use crate::{CallId, Document, Image, RunId, ToolCall};

/// What an executor is called by its operator, such as `cluster` = `prod`.
pub type Labels = BTreeMap<String, String>;

/// What the owner of a tool says of a call before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPlan {
    /// The call.
    pub call: CallId,
    /// What would run, in one line.
    pub description: String,
    /// Toolset of the tool; `None` for an unknown tool.
    pub toolset: Option<String>,
    /// The cluster whose executors would run it; `None` where no executor does.
    pub cluster: Option<String>,
    /// Whose standing permissions let it run; `None` if it needs none.
    pub by: Option<String>,
    /// Whether it may run.
    pub verdict: ToolVerdict,
}

impl ToolPlan {
    /// What an agent says of a call that no executor has to do with.
    pub fn own(call: &ToolCall, description: String, toolset: Option<&str>, verdict: ToolVerdict) -> Self {
        let (call, toolset) = (call.id.clone(), toolset.map(str::to_owned));
        Self { call, description, toolset, cluster: None, by: None, verdict }
    }
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolVerdict {
    /// It may.
    Allow,
    /// It may not; the text tells the model why.
    Refuse(String),
    /// The client's rules forbid it; the text tells the model why.
    Forbid(String),
    /// The client runs it and comes back with the result.
    AskClient,
    /// It may if a person allows it.
    AskPerson(Approval),
}

/// Whose tools a run has: what they are called and how they answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolProfile {
    /// HolmesGPT's.
    #[default]
    Holmes,
    /// Those of agents that work on files.
    Harness,
    /// That of agents that write code.
    Rlm,
}

impl ToolProfile {
    /// Its name in the contracts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holmes => "",
            Self::Harness => "harness",
            Self::Rlm => "rlm",
        }
    }

    /// The profile of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Holmes, Self::Harness, Self::Rlm].into_iter().find(|profile| profile.name() == name)
    }
}

/// Whether a call that was started runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// It runs, or ends at once with the reason why it does not.
    #[default]
    Open,
    /// It waits for the client first: for its result, or for a person's decision.
    Waits,
    /// The client's rules forbid it.
    Forbidden,
}

/// What a call can do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    /// It changes nothing and may run again.
    Read,
    /// It reads what may hold secrets.
    SensitiveRead,
    /// It changes something and runs at most once.
    Mutation,
}

/// What a person is asked to allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Why it does not run unasked.
    pub reason: String,
    /// The command as it would run, with control characters made visible; empty if it is none.
    pub command: String,
    /// What it would touch: a cluster or a host; empty if that is not known.
    pub target: String,
    /// What it can do.
    pub effect: ToolEffect,
    /// Beginnings of commands that could be allowed for later calls.
    pub prefixes: Vec<String>,
    /// Version of the policy that asks.
    pub policy: String,
}

/// A person's permission to run one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The run that asked for it.
    pub run: RunId,
    /// What the edge that knows the person has signed, for the executor.
    pub grant: Vec<u8>,
    /// What was allowed for later calls along with it, signed likewise.
    pub standing: Vec<Vec<u8>>,
    /// Whether calls like this one need no decision from now on, as far as the client's rules go.
    pub always: bool,
}

/// A tool that the client offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTool {
    /// Unique name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: String,
    /// What happens when the model calls it.
    pub mode: ClientToolMode,
}

/// What happens when a model calls a tool of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientToolMode {
    /// The run is suspended until the client comes back with the result.
    Pause,
    /// The model gets this text at once, and the client acts on the event.
    Noop(String),
}

/// Where a piece of output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Bytes of text that a call has printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// On standard output.
    pub stdout: u64,
    /// On standard error.
    pub stderr: u64,
}

impl Printed {
    /// Those on one stream.
    pub fn on(&mut self, stream: OutputStream) -> &mut u64 {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}

/// The executor that is given a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Where it is: an address, or the name under which it dialled in.
    pub executor: String,
    /// The process that answered there last; empty if it is not known.
    pub instance: String,
}

/// What a log says of a call that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// The executor that may have it. `None`: it was given to none.
    pub placement: Option<Placement>,
    /// What it printed.
    pub printed: Printed,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolStatus {
    /// It returned data.
    Success,
    /// It failed, was refused or was not found.
    Error,
    /// It worked and found nothing.
    NoData,
}

/// A file as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its path, as the call named it.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Whether it was not there before.
    pub created: bool,
}

/// How an executor ran a call, in its own words: for whoever looks into it, not for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// How it ended, such as `exited`, `timed_out` or `unknown`.
    pub ending: String,
    /// Which clock ended it, if it took too long, such as `run` or `idle`.
    pub clock: Option<String>,
    /// The sandbox that its processes had: `full`, `full-noproc`, `pod` or `none`; `None` if there were none.
    pub sandbox: Option<String>,
    /// The layers of it.
    pub sandbox_layers: Vec<String>,
    /// How many secrets were masked in what it wrote.
    pub redacted_spans: u64,
}

/// What a tool call returned.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// How it ended.
    pub status: ToolStatus,
    /// The output that the model sees.
    pub data: String,
    /// What went wrong, if the status is [`ToolStatus::Error`].
    pub error: Option<String>,
    /// Exit code of the process, if one ran to its end.
    pub return_code: Option<i32>,
    /// The command as it ran.
    pub invocation: Option<String>,
    /// How long it took, if anything ran.
    pub elapsed: Option<Duration>,
    /// Bytes of output that were left out of `data`.
    pub omitted_bytes: u64,
    /// Images that the model sees with `data`.
    pub images: Vec<Image>,
    /// Documents that the model sees with `data`.
    pub documents: Vec<Document>,
    /// Files of the session that it wrote, as far as that is known.
    pub written: Vec<WrittenFile>,
    /// How an executor ran it, if one did.
    pub ran: Option<Ran>,
}

impl ToolResult {
    /// The result of a call that something else than an executor answered.
    pub fn success(data: impl Into<String>) -> Self {
        Self { status: ToolStatus::Success, data: data.into(), error: None, ..Self::error("") }
    }

    /// The result of a call that never ran, or whose end is not known.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            data: String::new(),
            error: Some(text.into()),
            return_code: None,
            invocation: None,
            elapsed: None,
            omitted_bytes: 0,
            images: Vec::new(),
            documents: Vec::new(),
            written: Vec::new(),
            ran: None,
        }
    }
}
