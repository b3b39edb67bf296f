//! The log of a run: an ordered list of events from which everything else can be derived.

use std::time::Duration;

use crate::{
    AgentId, Approval, CallId, Ceiling, ClientTool, CodeOutput, ContextSize, Effort, Gate, Labels, Limits,
    Message, MessageId, OutputStream, Permission, Permissions, Placement, QuestionId, Rlm, RunId, ToolCall,
    ToolProfile, ToolResult, Totals, Usage,
};

/// Nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The run.
    pub run: RunId,
    /// Place in the log: dense, from 1.
    pub position: u64,
    /// When it was appended.
    pub time: Timestamp,
    /// The agent that it is about.
    pub agent: AgentId,
    /// The agent that started that agent; `None` for [`AgentId::main`].
    pub parent: Option<AgentId>,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// Whether nothing can follow in the run.
    pub fn ends_run(&self) -> bool {
        self.agent == AgentId::main() && self.kind.is_terminal()
    }
}

/// What happened. Matches on it are exhaustive, so that a new kind is a list of what to do.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The run began.
    RunStarted(RunStarted),
    /// Another process drives the run from here on: the one that did was lost, or handed it over.
    RunRecovered,
    /// The process that drives the run leaves it to another one: the next recovery is no loss.
    RunHandedOver,
    /// The model is asked.
    ModelCalled(ModelCalled),
    /// A reply broke off; what it said so far does not count.
    AttemptAbandoned {
        /// The message that will not be completed.
        message: MessageId,
        /// Why.
        reason: String,
    },
    /// More text of a message.
    TextDelta {
        /// The message.
        message: MessageId,
        /// The text, to be appended.
        text: String,
    },
    /// More thinking before a message.
    ThinkingDelta {
        /// The message.
        message: MessageId,
        /// The text, to be appended.
        text: String,
    },
    /// Tokens were counted: after each model call and after each round of tools.
    UsageReported(UsageReported),
    /// The model's message is complete.
    AssistantMessage(AssistantMessage),
    /// A tool call begins.
    ToolStarted {
        /// The call.
        call: ToolCall,
        /// What it will do, in one line.
        description: String,
        /// Toolset of the tool; `None` for an unknown tool.
        toolset: Option<String>,
        /// The cluster whose executors run it; `None` where no executor does.
        cluster: Option<String>,
        /// Whether it runs.
        gate: Gate,
        /// Whose standing permissions let it run; `None` if it needs none.
        by: Option<String>,
    },
    /// A call is given to an executor, which may have it from now on. Of several, the last one counts.
    CallPlaced {
        /// The call.
        call: CallId,
        /// The executor.
        placement: Placement,
    },
    /// A tool printed something.
    ToolOutput {
        /// The call.
        call: CallId,
        /// Where it came from.
        stream: OutputStream,
        /// The text.
        text: String,
    },
    /// A tool call ended.
    ToolFinished {
        /// The call.
        call: CallId,
        /// What it returned.
        result: ToolResult,
    },
    /// The agent's code begins to run.
    ReplInput {
        /// The call that it is, with the code in its arguments.
        call: ToolCall,
        /// How often the agent has run code, this time included.
        iteration: u32,
    },
    /// Code printed something.
    ReplProgress {
        /// The call that it is.
        call: CallId,
        /// Where it came from.
        stream: OutputStream,
        /// The text.
        text: String,
    },
    /// Code ended.
    ReplOutput {
        /// The call that it is.
        call: CallId,
        /// What came of it.
        output: CodeOutput,
    },
    /// A model has answered a question of code that no agent works on.
    QuestionAnswered(QuestionAnswered),
    /// A tool call waits for the client, which runs it.
    ClientToolRequested {
        /// The call.
        call: CallId,
    },
    /// A tool call waits for a person's decision.
    ApprovalRequested {
        /// The call.
        call: CallId,
        /// What is to be decided.
        approval: Approval,
    },
    /// A person allowed a call that an earlier run left open in the history: it begins now.
    CallApproved {
        /// The call.
        call: ToolCall,
        /// What it will do, in one line.
        description: String,
        /// Toolset of the tool; `None` for an unknown tool.
        toolset: Option<String>,
        /// The cluster whose executors run it; `None` where no executor does.
        cluster: Option<String>,
        /// The permission.
        permission: Permission,
    },
    /// A person allowed a call that waits in this run: it begins now.
    CallAllowed {
        /// The call.
        call: CallId,
        /// The permission.
        permission: Permission,
    },
    /// A call that was left open, in the history or in a run that waits, got its result.
    CallResolved {
        /// The call.
        call: ToolCall,
        /// Its result.
        result: ToolResult,
        /// Whether the client ran it: then the model reads the data as it is.
        by_client: bool,
    },
    /// Somebody said something to the run while it went on: the next model call has it.
    Steered(Steered),
    /// The conversation is too long: the model is asked for a summary of it.
    CompactionStarted(CompactionStarted),
    /// The summary took the place of the conversation.
    CompactionDone(CompactionDone),
    /// The conversation stays as it was.
    CompactionFailed {
        /// The summary that there is not.
        message: MessageId,
        /// Why.
        reason: String,
    },
    /// Something that a person who follows the run should know.
    Notice {
        /// In one sentence.
        text: String,
    },
    /// The run ended because it waits for the client, which comes back with its history.
    RunSuspended,
    /// The run ended with an answer.
    RunFinished {
        /// The answer, usually markdown.
        answer: String,
        /// The model's reason to stop, or the name of the ceiling that asked for the answer.
        reason: String,
    },
    /// The run ended without an answer.
    RunFailed {
        /// Why.
        code: FailureCode,
        /// What went wrong, for a person.
        message: String,
    },
    /// The run was stopped.
    RunCancelled {
        /// Why.
        reason: String,
    },
    /// An event of a session, in a log of its own.
    SessionRecord(SessionRecord),
}

impl EventKind {
    /// Whether nothing can follow of the same agent.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::RunSuspended
                | Self::RunFinished { .. }
                | Self::RunFailed { .. }
                | Self::RunCancelled { .. }
        )
    }
}

/// The run began.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStarted {
    /// Name of the model that answers.
    pub model: String,
    /// The conversation up to and including the question.
    pub messages: Vec<Message>,
    /// Tokens of what the model sees beside the conversation: the agent's prompt and the tools.
    pub overhead: ContextSize,
    /// The model's context window, in tokens.
    pub context_window: u64,
    /// Tokens reserved for one reply.
    pub max_output_tokens: u64,
    /// Whether the answer must have a form.
    pub structured: bool,
    /// Tools that the client offers.
    pub client_tools: Vec<ClientTool>,
    /// Runbooks that the question is about, by id, best first.
    pub runbooks: Vec<String>,
    /// Whether the client can put a call to a person.
    pub approvals: bool,
    /// Whether calls that need the client wait in the run. Otherwise the run is suspended.
    pub waits: bool,
    /// What subagents may be started.
    pub subagents: Subagents,
    /// How the agent works, if it does so by code.
    pub rlm: Option<Rlm>,
    /// For a subagent: the call of its parent that started it.
    pub call: Option<CallId>,
    /// For one that code asked: the question.
    pub question: Option<QuestionId>,
    /// What whoever takes the run over needs beside its events.
    pub setup: Box<RunSetup>,
    /// Account that owns the run.
    pub account: String,
    /// Who asked.
    pub principal: String,
}

/// What subagents an agent may start. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subagents {
    /// How many of them may be one below the other.
    pub depth: u32,
    /// How many a run may have in all.
    pub number: u32,
}

/// What whoever takes a run over needs beside its events. Readers do not get it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSetup {
    /// The agent's own prompt.
    pub system: String,
    /// The form of the answer, in OpenAI's words; empty for text.
    pub response_format: String,
    /// The ceilings.
    pub limits: Limits,
    /// The session that standing permissions and files belong to.
    pub session: String,
    /// Whose tools it has.
    pub profile: ToolProfile,
    /// SHA-256 of the input that code sees, which is a body of the log; empty for none.
    pub context: Vec<u8>,
    /// Where commands of code start, within the workspace; empty for the workspace itself.
    pub exec_directory: String,
    /// The executor process that has the session's files when the run begins; empty if there is none.
    pub home: String,
    /// Signed standing permissions.
    pub standing: Vec<Vec<u8>>,
    /// The cluster whose executors run its tools; empty for the agent's own executors, or for `clusters`.
    pub cluster: String,
    /// What the executors of its tools are called, beside what the agent asks for.
    pub labels: Labels,
    /// The clusters among which each call chooses, where there are several.
    pub clusters: Vec<String>,
    /// Who wants the run to go on without reading it, in words of its own; empty if only readers do.
    pub keeper: String,
    /// The client's rules about calls, if it has any.
    pub permissions: Option<Permissions>,
    /// How much the model is to think; `None` leaves it to the model.
    pub effort: Option<Effort>,
    /// The tools on offer, where somebody is told of them.
    pub tools: Vec<ToolBrief>,
}

/// A tool, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolBrief {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The set that it belongs to.
    pub toolset: String,
}

/// An event of a session. A run's machine knows nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The event, in the form of the contract of sessions.
    pub bytes: Vec<u8>,
    /// Whether a turn goes on after it, so that the session needs an owner.
    pub busy: bool,
}

/// Somebody said something to a run while it went on.
#[derive(Clone, Debug, PartialEq)]
pub struct Steered {
    /// What whoever said it calls it.
    pub key: String,
    /// What was said.
    pub message: Message,
    /// Who said it; empty if nobody was known.
    pub principal: String,
}

/// The model is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCalled {
    /// Id of the message that the reply becomes.
    pub message: MessageId,
    /// Number of the step, from 1.
    pub step: u32,
    /// Number of the try within the step, from 1.
    pub attempt: u32,
    /// Why the model must answer now, without tools; `None` while it may call them.
    pub closing: Option<Closing>,
}

/// Why a model must answer without tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// A ceiling of the run is met.
    Ceiling(Ceiling),
    /// Its answer did not have the form that was asked for.
    Form,
}

/// The model is asked for a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionStarted {
    /// Id of the summary.
    pub message: MessageId,
    /// Estimated size of what the model would see, in tokens.
    pub tokens: u64,
    /// Messages of the conversation.
    pub messages: u64,
    /// Share of the context window above which a conversation is compacted, in percent.
    pub threshold_percent: u64,
    /// Whether the call that follows must answer, because the run's time is up.
    pub time_is_up: bool,
}

/// The summary took the place of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionDone {
    /// Id of the summary.
    pub message: MessageId,
    /// What the model wrote.
    pub summary: String,
    /// The conversation from now on.
    pub messages: Vec<Message>,
    /// Estimated size of what the model saw before, in tokens.
    pub tokens_before: u64,
    /// The same, now.
    pub tokens_after: u64,
    /// Tokens and cost of the summary.
    pub usage: Usage,
}

/// Tokens were counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsageReported {
    /// The last model call.
    pub usage: Usage,
    /// The run so far.
    pub totals: Totals,
    /// The conversation as it is now.
    pub context: ContextSize,
}

/// A model has answered a question of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionAnswered {
    /// The call that the code is.
    pub call: CallId,
    /// The question.
    pub question: QuestionId,
    /// What was asked.
    pub prompt: String,
    /// SHA-256 of the text that was given along with it; empty if there was none.
    pub context: Vec<u8>,
    /// What the model said.
    pub answer: String,
}

/// The model's message is complete.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistantMessage {
    /// Its id.
    pub id: MessageId,
    /// The message.
    pub message: Message,
    /// The provider's reason to stop, such as `stop` or `tool_calls`.
    pub finish_reason: String,
    /// How it was had.
    pub exchange: Box<Exchange>,
}

/// How a reply was had of a model's provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The provider's id of it, if it gave one.
    pub response: Option<String>,
    /// How often the provider was asked in vain before.
    pub retries: u32,
    /// The pauses before these.
    pub waited: Duration,
}

/// Why a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The model's provider refused for its rate limit.
    RateLimited {
        /// When to try again, if it said so.
        retry_after: Option<Duration>,
    },
    /// Nothing is left of what may be had from the model's provider.
    QuotaExhausted,
    /// The model's provider refused the credentials.
    Unauthenticated,
    /// The model's provider refused the request.
    Rejected,
    /// The model's provider failed, hung or broke off.
    ModelUnavailable,
    /// The model's provider sent what cannot be read.
    MalformedReply,
    /// The run took too long.
    Deadline,
    /// The conversation does not fit into the model's context window.
    ContextTooLong,
    /// The agent itself failed.
    Internal,
}
