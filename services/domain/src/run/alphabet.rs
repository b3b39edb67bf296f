//! What goes into the machine and what comes out.

use crate::{
    Before, CallId, CodeOutput, EventKind, Exchange, FailureCode, Message, MessageId, OutputStream,
    Permission, Placement, QuestionAnswered, QuestionId, Steered, ToolCall, ToolPlan, ToolResult, Usage,
};

/// What a driver tells the machine. What no longer fits is ignored: a late input is not an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The run's first event is published: begin.
    Begin,
    /// The model said more.
    TextDelta {
        /// The message in progress.
        message: MessageId,
        /// The text, to be appended.
        text: String,
    },
    /// The model thought more.
    ThinkingDelta {
        /// The message in progress.
        message: MessageId,
        /// The text, to be appended.
        text: String,
    },
    /// The model's reply is complete.
    ModelReplied {
        /// The message in progress.
        message: MessageId,
        /// The reply.
        reply: ModelReply,
    },
    /// The model did not answer.
    ModelFailed {
        /// The message in progress.
        message: MessageId,
        /// Why.
        code: FailureCode,
        /// What went wrong, for a person.
        text: String,
    },
    /// The model call was lost with the process that made it; nobody knows how it ended.
    ModelLost {
        /// The message in progress.
        message: MessageId,
    },
    /// The owners of the tools have judged the calls of the last message.
    Planned(Vec<ToolPlan>),
    /// A call is to be given to an executor.
    Placed {
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
    /// Code of the agent ended.
    CodeEnded {
        /// The call that it is.
        call: CallId,
        /// What came of it.
        output: CodeOutput,
    },
    /// A model was asked beside the conversation, once.
    Asked(Usage),
    /// A model has answered a question of the agent's code.
    QuestionAnswered(QuestionAnswered, Usage),
    /// Code of the agent wants to run a command, which was judged.
    CommandJudged {
        /// The command, under the id that [`CallId::of_command`] makes.
        command: ToolCall,
        /// Whether it may run.
        plan: ToolPlan,
    },
    /// Somebody settled a call that waits.
    Settled {
        /// The call.
        call: CallId,
        /// How it goes on.
        settlement: Settlement,
    },
    /// Somebody said something to the run.
    Steered(Steered),
    /// The timer armed by [`Effect::ArmTimer`] rang.
    TimeUp,
    /// The process that drives the run is to leave it to another one.
    HandedOver,
    /// Another process has taken the run over: what was in flight is to be begun again.
    TakenOver,
    /// Somebody wants the run to stop.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// The driver cannot go on, for a reason of its own.
    Broken {
        /// What went wrong.
        text: String,
    },
}

/// How a call that waits for the client goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// A person allows it.
    Allowed(Permission),
    /// A person denies it; the text tells the model why.
    Denied(String),
    /// The client ran it; the model reads the text as it is.
    Done(String),
    /// Nobody said anything in time.
    Expired,
}

/// A model's reply, as far as a run cares.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// The message, with its tool calls.
    pub message: Message,
    /// Tokens and cost of the call.
    pub usage: Usage,
    /// The provider's reason to stop.
    pub finish_reason: String,
    /// Whether its text has the form that was asked for, if one was.
    pub in_form: bool,
    /// How it was had.
    pub exchange: Exchange,
}

/// What the driver must do, in order, after it has published the events of the same [`Step`].
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the model.
    CallModel {
        /// Id of the message that the reply becomes.
        message: MessageId,
        /// Whether to offer tools. Without them, the answer's form can be asked for.
        offer_tools: bool,
        /// An instruction for this call alone, after the conversation.
        note: Option<String>,
    },
    /// Ask the model for a summary of the conversation ([`Run::summary_request`](crate::Run::summary_request)).
    Summarize {
        /// Id of the summary.
        message: MessageId,
    },
    /// Stop asking the model, for a reply or for a summary.
    StopModel,
    /// Have these calls judged; the answer is [`Input::Planned`].
    Plan(Vec<ToolCall>),
    /// Stop having them judged.
    StopPlan,
    /// Run a tool.
    RunTool {
        /// The call.
        call: ToolCall,
        /// A person's permission, if it needed one.
        permission: Option<Permission>,
        /// What the log has of it, where another process had it before.
        before: Before,
    },
    /// Give a call to the executor that was named last: the log says so now.
    SendCall(CallId),
    /// Stop a tool, or stop waiting for the client's word about it.
    StopTool(CallId),
    /// Wait for the client's word about a call, at most for this time: then it is [`Settlement::Expired`].
    AwaitClient {
        /// The call.
        call: CallId,
        /// How long.
        time: std::time::Duration,
    },
    /// Ring once after this time; a new timer replaces the old one.
    ArmTimer(std::time::Duration),
    /// Tell code of the agent what became of a question of its own.
    AnswerCode {
        /// The call that the code is.
        call: CallId,
        /// The question.
        question: QuestionId,
        /// The answer, or why there is none.
        answer: Result<String, String>,
    },
    /// The run has ended.
    Finish,
}

/// What an input led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// To be published first.
    pub events: Vec<EventKind>,
    /// To be done then.
    pub effects: Vec<Effect>,
}

impl Step {
    /// What follows from another input.
    pub fn then(&mut self, next: Self) {
        self.events.extend(next.events);
        self.effects.extend(next.effects);
    }
}

/// How a command of code stands that was put to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// It was not.
    Unknown,
    /// It waits for the person, or runs.
    Open,
    /// It has ended, or was denied.
    Ended,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Finished,
    /// It waits for the client.
    Suspended,
    /// Without one.
    Failed,
    /// It was stopped.
    Cancelled,
}
