//! Events.

use std::time::Duration;

use domain::{
    AgentId, Approval, AssistantMessage, CallId, Ceiling, Closing, CompactionDone, CompactionStarted, Event,
    EventKind, Exchange, FailureCode, MessageId, ModelCalled, Permission, Placement, QuestionAnswered,
    QuestionId, RunId, RunStarted, SessionRecord, Steered, Timestamp, UsageReported,
};

use super::{Malformed, non_empty};
use crate::agent::{self as wire, event::Kind};

impl From<Event> for wire::Event {
    fn from(event: Event) -> Self {
        Self {
            run_id: event.run.as_str().to_owned(),
            position: event.position,
            time: Some(time(event.time)),
            agent_id: event.agent.as_str().to_owned(),
            parent_agent_id: event.parent.map(|parent| parent.as_str().to_owned()).unwrap_or_default(),
            kind: Some(event.kind.into()),
        }
    }
}

impl TryFrom<wire::Event> for Event {
    type Error = Malformed;

    fn try_from(event: wire::Event) -> Result<Self, Malformed> {
        let time = event.time.ok_or(Malformed("an event has no time"))?;
        Ok(Self {
            run: RunId::new(event.run_id),
            position: event.position,
            time: timestamp(time),
            agent: AgentId::new(event.agent_id),
            parent: non_empty(event.parent_agent_id).map(AgentId::new),
            kind: event.kind.ok_or(Malformed("an event of an unknown kind"))?.try_into()?,
        })
    }
}

/// A point in time as the wire has it.
pub fn time(time: Timestamp) -> prost_types::Timestamp {
    let nanos = time.0.rem_euclid(1_000_000_000);
    prost_types::Timestamp {
        seconds: time.0.div_euclid(1_000_000_000),
        nanos: i32::try_from(nanos).unwrap_or_default(),
    }
}

/// The same back.
pub fn timestamp(time: prost_types::Timestamp) -> Timestamp {
    Timestamp(time.seconds.saturating_mul(1_000_000_000).saturating_add(time.nanos.into()))
}

impl From<EventKind> for Kind {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::RunStarted(started) => Self::RunStarted(wire::RunStarted {
                model: started.model,
                messages: started.messages.into_iter().map(Into::into).collect(),
                structured: started.structured,
                runbooks: started.runbooks,
                context_window: started.context_window,
                max_output_tokens: started.max_output_tokens,
                account: started.account,
                principal: started.principal,
                overhead: Some(started.overhead.into()),
                client_tools: started.client_tools.into_iter().map(Into::into).collect(),
                approvals: started.approvals,
                waits: started.waits,
                subagents: Some(started.subagents.into()),
                call_id: started.call.as_ref().map(|call| call.as_str().to_owned()).unwrap_or_default(),
                rlm: started.rlm.map(Into::into),
                question_id: started
                    .question
                    .map(|question| question.as_str().to_owned())
                    .unwrap_or_default(),
                setup: Some((*started.setup).into()),
            }),
            EventKind::RunRecovered => Self::RunRecovered(wire::RunRecovered {}),
            EventKind::RunHandedOver => Self::RunHandedOver(wire::RunHandedOver {}),
            EventKind::SessionRecord(SessionRecord { bytes: record, busy }) => {
                Self::SessionRecord(wire::SessionRecord { record, busy })
            }
            EventKind::ModelCalled(called) => Self::ModelCalled(wire::ModelCalled {
                message_id: id(&called.message),
                step: called.step,
                attempt: called.attempt,
                tools_offered: called.closing.is_none(),
                closing: called.closing.map(closing_name).unwrap_or_default().to_owned(),
            }),
            EventKind::AttemptAbandoned { message, reason } => {
                Self::AttemptAbandoned(wire::AttemptAbandoned { message_id: id(&message), reason })
            }
            EventKind::TextDelta { message, text } => {
                Self::TextDelta(wire::TextDelta { message_id: id(&message), text })
            }
            EventKind::ThinkingDelta { message, text } => {
                Self::ThinkingDelta(wire::ThinkingDelta { message_id: id(&message), text })
            }
            EventKind::UsageReported(report) => Self::UsageReported(wire::UsageReported {
                usage: Some(report.usage.into()),
                totals: Some(report.totals.into()),
                context: Some(report.context.into()),
            }),
            EventKind::QuestionAnswered(answered) => Self::QuestionAnswered(wire::QuestionAnswered {
                call_id: answered.call.as_str().to_owned(),
                question_id: answered.question.as_str().to_owned(),
                prompt: answered.prompt,
                context_sha256: answered.context,
                answer: answered.answer,
            }),
            EventKind::AssistantMessage(assistant) => Self::AssistantMessage(wire::AssistantMessage {
                message_id: id(&assistant.id),
                message: Some(assistant.message.into()),
                finish_reason: assistant.finish_reason,
                response_id: assistant.exchange.response.unwrap_or_default(),
                retries: assistant.exchange.retries,
                retry_wait_ms: u64::try_from(assistant.exchange.waited.as_millis()).unwrap_or(u64::MAX),
            }),
            EventKind::ToolStarted { call, description, toolset, cluster, gate, by } => {
                Self::ToolStarted(wire::ToolStarted {
                    call: Some(call.into()),
                    description,
                    toolset: toolset.unwrap_or_default(),
                    cluster: cluster.unwrap_or_default(),
                    gate: wire::ToolGate::from(gate).into(),
                    allowed_by: by.unwrap_or_default(),
                })
            }
            EventKind::ToolOutput { call, stream, text } => Self::ToolOutput(wire::ToolOutput {
                call_id: call.as_str().to_owned(),
                stream: wire::OutputStream::from(stream).into(),
                text,
            }),
            EventKind::ToolFinished { call, result } => Self::ToolFinished(wire::ToolFinished {
                call_id: call.as_str().to_owned(),
                result: Some(result.into()),
            }),
            EventKind::ReplInput { call, iteration } => {
                Self::ReplInput(wire::ReplInput { call: Some(call.into()), iteration })
            }
            EventKind::ReplProgress { call, stream, text } => Self::ReplProgress(wire::ReplProgress {
                call_id: call.as_str().to_owned(),
                stream: wire::OutputStream::from(stream).into(),
                text,
            }),
            EventKind::ReplOutput { call, output } => Self::ReplOutput(super::rlm::output(&call, output)),
            EventKind::ClientToolRequested { call } => {
                Self::ClientToolRequested(wire::ClientToolRequested { call_id: call.as_str().to_owned() })
            }
            EventKind::ApprovalRequested { call, approval } => {
                Self::ApprovalRequested(wire::ApprovalRequested {
                    call_id: call.as_str().to_owned(),
                    reason: approval.reason,
                    command: approval.command,
                    target: approval.target,
                    effect: wire::ToolEffect::from(approval.effect).into(),
                    prefixes: approval.prefixes,
                    policy_version: approval.policy,
                })
            }
            EventKind::CallApproved { call, description, toolset, cluster, permission } => {
                Self::CallApproved(wire::CallApproved {
                    call: Some(call.into()),
                    description,
                    toolset: toolset.unwrap_or_default(),
                    cluster: cluster.unwrap_or_default(),
                    run_id: permission.run.as_str().to_owned(),
                    grant: permission.grant,
                    standing_grants: permission.standing,
                })
            }
            EventKind::CallAllowed { call, permission } => Self::CallAllowed(wire::CallAllowed {
                call_id: call.as_str().to_owned(),
                run_id: permission.run.as_str().to_owned(),
                grant: permission.grant,
                standing_grants: permission.standing,
                always: permission.always,
            }),
            EventKind::CallResolved { call, result, by_client } => Self::CallResolved(wire::CallResolved {
                call: Some(call.into()),
                result: Some(result.into()),
                by_client,
            }),
            EventKind::Steered(Steered { key, message, principal }) => {
                Self::Steered(wire::Steered { key, message: Some(message.into()), principal })
            }
            EventKind::CompactionStarted(started) => Self::CompactionStarted(wire::CompactionStarted {
                message_id: id(&started.message),
                tokens: started.tokens,
                messages: started.messages,
                threshold_percent: started.threshold_percent,
                time_is_up: started.time_is_up,
            }),
            EventKind::CompactionDone(done) => Self::CompactionDone(wire::CompactionDone {
                message_id: id(&done.message),
                summary: done.summary,
                messages: done.messages.into_iter().map(Into::into).collect(),
                tokens_before: done.tokens_before,
                tokens_after: done.tokens_after,
                usage: Some(done.usage.into()),
            }),
            EventKind::CompactionFailed { message, reason } => {
                Self::CompactionFailed(wire::CompactionFailed { message_id: id(&message), reason })
            }
            EventKind::CallPlaced { call, placement } => Self::CallPlaced(wire::CallPlaced {
                call_id: call.as_str().to_owned(),
                executor: placement.executor,
                instance: placement.instance,
            }),
            EventKind::Notice { text } => Self::Notice(wire::Notice { text }),
            EventKind::RunSuspended => Self::RunSuspended(wire::RunSuspended {}),
            EventKind::RunFinished { answer, reason } => {
                Self::RunFinished(wire::RunFinished { answer, finish_reason: reason })
            }
            EventKind::RunFailed { code, message } => {
                let retry_after_seconds = match code {
                    FailureCode::RateLimited { retry_after } => retry_after.map(whole_seconds),
                    _ => None,
                };
                let code = wire::FailureCode::from(code).into();
                Self::RunFailed(wire::RunFailed { code, message, retry_after_seconds })
            }
            EventKind::RunCancelled { reason } => Self::RunCancelled(wire::RunCancelled { reason }),
        }
    }
}

impl TryFrom<Kind> for EventKind {
    type Error = Malformed;

    fn try_from(kind: Kind) -> Result<Self, Malformed> {
        Ok(match kind {
            Kind::RunStarted(started) => Self::RunStarted(RunStarted {
                model: started.model,
                messages: started.messages.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
                structured: started.structured,
                runbooks: started.runbooks,
                overhead: started.overhead.unwrap_or_default().into(),
                client_tools: started.client_tools.into_iter().map(Into::into).collect(),
                approvals: started.approvals,
                waits: started.waits,
                subagents: started.subagents.unwrap_or_default().into(),
                call: non_empty(started.call_id).map(CallId::new),
                rlm: started.rlm.map(Into::into),
                question: non_empty(started.question_id).map(QuestionId::new),
                setup: Box::new(started.setup.unwrap_or_default().into()),
                context_window: started.context_window,
                max_output_tokens: started.max_output_tokens,
                account: started.account,
                principal: started.principal,
            }),
            Kind::RunRecovered(_) => Self::RunRecovered,
            Kind::RunHandedOver(_) => Self::RunHandedOver,
            Kind::CallPlaced(placed) => Self::CallPlaced {
                call: CallId::new(placed.call_id),
                placement: Placement { executor: placed.executor, instance: placed.instance },
            },
            Kind::SessionRecord(wire::SessionRecord { record: bytes, busy }) => {
                Self::SessionRecord(SessionRecord { bytes, busy })
            }
            Kind::ModelCalled(called) => Self::ModelCalled(ModelCalled {
                closing: closing(&called)?,
                message: MessageId::new(called.message_id),
                step: called.step,
                attempt: called.attempt,
            }),
            Kind::AttemptAbandoned(abandoned) => Self::AttemptAbandoned {
                message: MessageId::new(abandoned.message_id),
                reason: abandoned.reason,
            },
            Kind::TextDelta(delta) => {
                Self::TextDelta { message: MessageId::new(delta.message_id), text: delta.text }
            }
            Kind::ThinkingDelta(delta) => {
                Self::ThinkingDelta { message: MessageId::new(delta.message_id), text: delta.text }
            }
            Kind::UsageReported(report) => Self::UsageReported(UsageReported {
                usage: report.usage.unwrap_or_default().into(),
                totals: report.totals.unwrap_or_default().into(),
                context: report.context.unwrap_or_default().into(),
            }),
            Kind::QuestionAnswered(answered) => Self::QuestionAnswered(QuestionAnswered {
                call: CallId::new(answered.call_id),
                question: QuestionId::new(answered.question_id),
                prompt: answered.prompt,
                context: answered.context_sha256,
                answer: answered.answer,
            }),
            Kind::AssistantMessage(assistant) => Self::AssistantMessage(AssistantMessage {
                id: MessageId::new(assistant.message_id),
                message: assistant.message.ok_or(Malformed("an assistant message is empty"))?.try_into()?,
                finish_reason: assistant.finish_reason,
                exchange: Box::new(Exchange {
                    response: non_empty(assistant.response_id),
                    retries: assistant.retries,
                    waited: Duration::from_millis(assistant.retry_wait_ms),
                }),
            }),
            Kind::ToolStarted(started) => Self::ToolStarted {
                gate: started.gate().into(),
                by: non_empty(started.allowed_by),
                call: started.call.ok_or(Malformed("a started tool call is empty"))?.try_into()?,
                description: started.description,
                toolset: non_empty(started.toolset),
                cluster: non_empty(started.cluster),
            },
            Kind::ToolOutput(output) => Self::ToolOutput {
                stream: output.stream().try_into()?,
                call: CallId::new(output.call_id),
                text: output.text,
            },
            Kind::ToolFinished(finished) => Self::ToolFinished {
                call: CallId::new(finished.call_id),
                result: finished.result.ok_or(Malformed("a finished tool call has no result"))?.try_into()?,
            },
            Kind::ReplInput(input) => Self::ReplInput {
                call: input.call.ok_or(Malformed("code is empty"))?.try_into()?,
                iteration: input.iteration,
            },
            Kind::ReplProgress(progress) => Self::ReplProgress {
                stream: progress.stream().try_into()?,
                call: CallId::new(progress.call_id),
                text: progress.text,
            },
            Kind::ReplOutput(output) => {
                Self::ReplOutput { call: CallId::new(&output.call_id), output: output.into() }
            }
            Kind::ClientToolRequested(requested) => {
                Self::ClientToolRequested { call: CallId::new(requested.call_id) }
            }
            Kind::ApprovalRequested(requested) => Self::ApprovalRequested {
                approval: Approval {
                    effect: requested.effect().try_into()?,
                    reason: requested.reason,
                    command: requested.command,
                    target: requested.target,
                    prefixes: requested.prefixes,
                    policy: requested.policy_version,
                },
                call: CallId::new(requested.call_id),
            },
            Kind::CallApproved(approved) => Self::CallApproved {
                call: approved.call.ok_or(Malformed("an approved tool call is empty"))?.try_into()?,
                description: approved.description,
                toolset: non_empty(approved.toolset),
                cluster: non_empty(approved.cluster),
                permission: Permission {
                    run: RunId::new(approved.run_id),
                    grant: approved.grant,
                    standing: approved.standing_grants,
                    always: false,
                },
            },
            Kind::CallAllowed(allowed) => Self::CallAllowed {
                call: CallId::new(allowed.call_id),
                permission: Permission {
                    run: RunId::new(allowed.run_id),
                    grant: allowed.grant,
                    standing: allowed.standing_grants,
                    always: allowed.always,
                },
            },
            Kind::CallResolved(resolved) => Self::CallResolved {
                call: resolved.call.ok_or(Malformed("a resolved tool call is empty"))?.try_into()?,
                result: resolved.result.ok_or(Malformed("a resolved tool call has no result"))?.try_into()?,
                by_client: resolved.by_client,
            },
            Kind::Steered(steered) => Self::Steered(Steered {
                key: steered.key,
                message: steered.message.ok_or(Malformed("nothing was said"))?.try_into()?,
                principal: steered.principal,
            }),
            Kind::CompactionStarted(started) => Self::CompactionStarted(CompactionStarted {
                message: MessageId::new(started.message_id),
                tokens: started.tokens,
                messages: started.messages,
                threshold_percent: started.threshold_percent,
                time_is_up: started.time_is_up,
            }),
            Kind::CompactionDone(done) => Self::CompactionDone(CompactionDone {
                message: MessageId::new(done.message_id),
                summary: done.summary,
                messages: done.messages.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
                tokens_before: done.tokens_before,
                tokens_after: done.tokens_after,
                usage: done.usage.unwrap_or_default().into(),
            }),
            Kind::CompactionFailed(failed) => {
                Self::CompactionFailed { message: MessageId::new(failed.message_id), reason: failed.reason }
            }
            Kind::Notice(notice) => Self::Notice { text: notice.text },
            Kind::RunSuspended(_) => Self::RunSuspended,
            Kind::RunFinished(finished) => {
                Self::RunFinished { answer: finished.answer, reason: finished.finish_reason }
            }
            Kind::RunFailed(failed) => Self::RunFailed { code: failure(&failed)?, message: failed.message },
            Kind::RunCancelled(cancelled) => Self::RunCancelled { reason: cancelled.reason },
        })
    }
}

/// The name of the reason that is no ceiling.
const FORM: &str = "form";

fn closing_name(closing: Closing) -> &'static str {
    match closing {
        Closing::Ceiling(ceiling) => ceiling.name(),
        Closing::Form => FORM,
    }
}

fn closing(called: &wire::ModelCalled) -> Result<Option<Closing>, Malformed> {
    match called.closing.as_str() {
        _ if called.tools_offered => Ok(None),
        FORM => Ok(Some(Closing::Form)),
        name => match Ceiling::named(name) {
            Some(ceiling) => Ok(Some(Closing::Ceiling(ceiling))),
            None => Err(Malformed("a model is called without tools for no known reason")),
        },
    }
}

fn id(message: &MessageId) -> String {
    message.as_str().to_owned()
}

impl From<FailureCode> for wire::FailureCode {
    fn from(code: FailureCode) -> Self {
        match code {
            FailureCode::RateLimited { .. } => Self::RateLimited,
            FailureCode::QuotaExhausted => Self::QuotaExhausted,
            FailureCode::Unauthenticated => Self::Unauthenticated,
            FailureCode::Rejected => Self::Rejected,
            FailureCode::ModelUnavailable => Self::ModelUnavailable,
            FailureCode::MalformedReply => Self::MalformedReply,
            FailureCode::Deadline => Self::Deadline,
            FailureCode::Internal => Self::Internal,
            FailureCode::ContextTooLong => Self::ContextTooLong,
        }
    }
}

/// Seconds after which all of a time is over.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn failure(failed: &wire::RunFailed) -> Result<FailureCode, Malformed> {
    Ok(match failed.code() {
        wire::FailureCode::RateLimited => {
            FailureCode::RateLimited { retry_after: failed.retry_after_seconds.map(Duration::from_secs) }
        }
        wire::FailureCode::QuotaExhausted => FailureCode::QuotaExhausted,
        wire::FailureCode::Unauthenticated => FailureCode::Unauthenticated,
        wire::FailureCode::Rejected => FailureCode::Rejected,
        wire::FailureCode::ModelUnavailable => FailureCode::ModelUnavailable,
        wire::FailureCode::MalformedReply => FailureCode::MalformedReply,
        wire::FailureCode::Deadline => FailureCode::Deadline,
        wire::FailureCode::Internal => FailureCode::Internal,
        wire::FailureCode::ContextTooLong => FailureCode::ContextTooLong,
        wire::FailureCode::Unspecified => return Err(Malformed("a failure has no code")),
    })
}
