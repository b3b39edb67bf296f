//! What the log of a run says to an auditor.

use std::collections::HashMap;

use domain::{CallId, Event, EventKind, ToolStatus};
use prost::Message as _;

use super::time;
use crate::{
    account::{AuditEntry, audit_entry as entry, audit_entry::What},
    executor::{Grant, SignedGrant},
};

/// The log that has the trail of a run that was deleted.
pub fn kept_trail(run: &str) -> String {
    format!("trail_{run}")
}

/// Makes the entries of an audit trail of the events of a run, in their order.
#[derive(Debug, Default)]
pub struct AuditReader {
    account: String,
    principal: String,
    /// The only cluster that the run looks at.
    cluster: String,
    /// Where its calls run.
    calls: HashMap<CallId, String>,
}

impl AuditReader {
    /// One that has read nothing yet of a run of an account.
    pub fn new(account: String) -> Self {
        Self { account, ..Self::default() }
    }

    /// What an event says to an auditor, if it says something.
    pub fn entry(&mut self, event: &Event) -> Option<AuditEntry> {
        if let EventKind::RunStarted(started) = &event.kind
            && started.call.is_none()
        {
            self.principal.clone_from(&started.principal);
            self.cluster.clone_from(&started.setup.cluster);
        }
        let what = what(event)?;
        Some(AuditEntry {
            time: Some(time(event.time)),
            account: self.account.clone(),
            run_id: event.run.as_str().to_owned(),
            position: event.position,
            principal: self.speaker(&event.kind).to_owned(),
            cluster: self.place(&event.kind),
            what: Some(what),
        })
    }

    /// Who asked for what an event tells of.
    fn speaker<'a>(&'a self, event: &'a EventKind) -> &'a str {
        match event {
            EventKind::Steered(steered) => &steered.principal,
            _ => &self.principal,
        }
    }

    fn place(&mut self, event: &EventKind) -> String {
        let found = match event {
            EventKind::ToolStarted { call, cluster, .. } | EventKind::CallApproved { call, cluster, .. } => {
                let cluster = cluster.clone().unwrap_or_default();
                self.calls.insert(call.id.clone(), cluster.clone());
                Some(cluster)
            }
            EventKind::ApprovalRequested { call, .. } | EventKind::CallAllowed { call, .. } => {
                self.calls.get(call).cloned()
            }
            EventKind::ToolFinished { call, .. } => self.calls.remove(call),
            EventKind::CallResolved { call, .. } => self.calls.remove(&call.id),
            _ => None,
        };
        found.unwrap_or_else(|| self.cluster.clone())
    }
}

/// What an event says to an auditor.
fn what(event: &Event) -> Option<What> {
    Some(match &event.kind {
        EventKind::RunStarted(started) => What::Asked(entry::Asked {
            question: started.messages.last().map(domain::Message::joined_text).unwrap_or_default(),
            model: started.model.clone(),
            clusters: started.setup.clusters.clone(),
        }),
        EventKind::Steered(steered) => {
            What::Asked(entry::Asked { question: steered.message.joined_text(), ..entry::Asked::default() })
        }
        EventKind::ToolStarted { call, description, by, .. } => What::Began(entry::Began {
            call_id: call.id.to_string(),
            tool: call.name.clone(),
            description: description.clone(),
            arguments_json: call.arguments.clone(),
            by: by.clone().unwrap_or_default(),
        }),
        EventKind::ReplInput { call, .. } => What::Began(entry::Began {
            call_id: call.id.to_string(),
            tool: call.name.clone(),
            arguments_json: call.arguments.clone(),
            ..entry::Began::default()
        }),
        EventKind::ApprovalRequested { call, approval } => What::Waits(entry::Waits {
            call_id: call.to_string(),
            command: approval.command.clone(),
            target: approval.target.clone(),
            reason: approval.reason.clone(),
        }),
        EventKind::CallApproved { call, description, permission, .. } => What::Allowed(entry::Allowed {
            call_id: call.id.to_string(),
            tool: call.name.clone(),
            description: description.clone(),
            arguments_json: call.arguments.clone(),
            by: decider(&permission.grant),
        }),
        EventKind::CallAllowed { call, permission } => What::Allowed(entry::Allowed {
            call_id: call.to_string(),
            by: decider(&permission.grant),
            ..entry::Allowed::default()
        }),
        EventKind::ToolFinished { call, result } => ended(call.to_string(), result),
        EventKind::ReplOutput { call, output } => What::Ended(entry::Ended {
            call_id: call.to_string(),
            status: if output.error.is_none() { "success" } else { "error" }.to_owned(),
            error: output.error.clone().unwrap_or_default(),
            ..entry::Ended::default()
        }),
        EventKind::CallResolved { call, result, .. } => ended(call.id.to_string(), result),
        EventKind::RunSuspended => closed("suspended", ""),
        EventKind::RunFinished { .. } => closed("finished", ""),
        EventKind::RunFailed { message, .. } => closed("failed", message),
        EventKind::RunCancelled { reason } => closed("cancelled", reason),
        EventKind::RunRecovered
        | EventKind::RunHandedOver
        | EventKind::CallPlaced { .. }
        | EventKind::SessionRecord(_)
        | EventKind::ModelCalled(_)
        | EventKind::AttemptAbandoned { .. }
        | EventKind::TextDelta { .. }
        | EventKind::ThinkingDelta { .. }
        | EventKind::UsageReported(_)
        | EventKind::AssistantMessage(_)
        | EventKind::ToolOutput { .. }
        | EventKind::ReplProgress { .. }
        | EventKind::QuestionAnswered(_)
        | EventKind::ClientToolRequested { .. }
        | EventKind::CompactionStarted(_)
        | EventKind::CompactionDone(_)
        | EventKind::CompactionFailed { .. }
        | EventKind::Notice { .. } => return None,
    })
}

fn ended(call_id: String, result: &domain::ToolResult) -> What {
    let status = match result.status {
        ToolStatus::Success => "success",
        ToolStatus::Error => "error",
        ToolStatus::NoData => "no_data",
    };
    What::Ended(entry::Ended {
        call_id,
        status: status.to_owned(),
        command: result.invocation.clone().unwrap_or_default(),
        return_code: result.return_code,
        error: result.error.clone().unwrap_or_default(),
    })
}

fn closed(outcome: &str, reason: &str) -> What {
    What::Closed(entry::Closed { outcome: outcome.to_owned(), reason: reason.to_owned() })
}

/// Who signed a permission. Whether it counted is for the executor to say, and the call's end tells.
fn decider(signed: &[u8]) -> String {
    let grant = SignedGrant::decode(signed).and_then(|signed| Grant::decode(signed.grant));
    grant.map(|grant| grant.principal).unwrap_or_default()
}
