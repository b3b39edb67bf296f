//! The domain: what a run is, without any I/O.
//!
//! Nothing here awaits, reads a clock, makes a random id, logs or knows a serialization format.
//!
//! # Layout
//! * [`event`](Event): the log of a run, which everything else reads or projects
//! * [`message`](Message): the conversation that a model sees
//! * [`image`](Image), [`document`](Document): images and documents in it
//! * [`tool`](ToolPlan): tool calls, their plans and results
//! * [`effort`](Effort): how much a model is to think
//! * [`permissions`](Permissions): rules of a client about calls
//! * [`limits`](Limits): ceilings of a run; [`usage`](Usage): tokens and cost
//! * [`tokens`]: estimates of what no provider has counted yet
//! * [`Run`]: the machine; inputs in, events and effects out; [`rlm`](Rlm): when it works by writing code
//! * [`id`](RunId): what all these are named by

mod document;
mod effort;
mod event;
mod id;
mod image;
mod limits;
mod message;
mod permissions;
mod rlm;
mod run;
mod tool;
mod usage;

pub mod tokens;

pub use document::{BadDocument, Document};
pub use effort::Effort;
pub use event::{
    AssistantMessage, Closing, CompactionDone, CompactionStarted, Event, EventKind, Exchange, FailureCode,
    ModelCalled, QuestionAnswered, RunSetup, RunStarted, SessionRecord, Steered, Subagents, Timestamp,
    ToolBrief, UsageReported,
};
pub use id::{AgentId, CallId, LogId, MessageId, QuestionId, RunId};
pub use image::{BadImage, Image};
pub use limits::{Ceiling, Limits};
pub use message::{Message, Part, Role, Thinking, ToolCall};
pub use permissions::{Denial, Denied, Parameters, Permissions, Rule};
pub use rlm::{CodeOutput, Rlm};
pub use run::{
    Command, Effect, Family, Input, ModelReply, Move, Outcome, Run, Settlement, Step, SummaryRequest,
};
pub use tool::{
    Approval, Before, ClientTool, ClientToolMode, Gate, Labels, OutputStream, Permission, Placement, Printed,
    Ran, ToolEffect, ToolPlan, ToolProfile, ToolResult, ToolStatus, ToolVerdict, WrittenFile,
};
pub use usage::{ContextSize, Totals, Usage};
