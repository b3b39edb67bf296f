//! One line of the audit trail.

use serde::Serialize;
use wire::account::{AuditEntry, audit_entry::What};

#[derive(Serialize)]
struct Line<'a> {
    time: Option<String>,
    account: &'a str,
    run_id: &'a str,
    position: u64,
    principal: &'a str,
    cluster: &'a str,
    #[serde(flatten)]
    what: Happened<'a>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Happened<'a> {
    Asked {
        question: &'a str,
        model: &'a str,
        clusters: &'a [String],
    },
    Began {
        call_id: &'a str,
        tool: &'a str,
        description: &'a str,
        arguments: &'a str,
        by: &'a str,
    },
    Waits {
        call_id: &'a str,
        command: &'a str,
        target: &'a str,
        reason: &'a str,
    },
    Allowed {
        call_id: &'a str,
        tool: &'a str,
        description: &'a str,
        arguments: &'a str,
        by: &'a str,
    },
    Ended {
        call_id: &'a str,
        status: &'a str,
        command: &'a str,
        return_code: Option<i32>,
        error: &'a str,
    },
    Closed {
        outcome: &'a str,
        reason: &'a str,
    },
    /// From an agent that is newer than this gateway.
    Unknown,
}

/// An entry as a line of JSON.
pub(super) fn line(entry: &AuditEntry) -> String {
    let line = Line {
        time: entry.time.map(|at| at.to_string()),
        account: &entry.account,
        run_id: &entry.run_id,
        position: entry.position,
        principal: &entry.principal,
        cluster: &entry.cluster,
        what: happened(entry.what.as_ref()),
    };
    // Serializing plain structs into memory cannot fail.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

fn happened(what: Option<&What>) -> Happened<'_> {
    match what {
        Some(What::Asked(asked)) => {
            Happened::Asked { question: &asked.question, model: &asked.model, clusters: &asked.clusters }
        }
        Some(What::Began(began)) => Happened::Began {
            call_id: &began.call_id,
            tool: &began.tool,
            description: &began.description,
            arguments: &began.arguments_json,
            by: &began.by,
        },
        Some(What::Waits(waits)) => Happened::Waits {
            call_id: &waits.call_id,
            command: &waits.command,
            target: &waits.target,
            reason: &waits.reason,
        },
        Some(What::Allowed(allowed)) => Happened::Allowed {
            call_id: &allowed.call_id,
            tool: &allowed.tool,
            description: &allowed.description,
            arguments: &allowed.arguments_json,
            by: &allowed.by,
        },
        Some(What::Ended(ended)) => Happened::Ended {
            call_id: &ended.call_id,
            status: &ended.status,
            command: &ended.command,
            return_code: ended.return_code,
            error: &ended.error,
        },
        Some(What::Closed(closed)) => Happened::Closed { outcome: &closed.outcome, reason: &closed.reason },
        None => Happened::Unknown,
    }
}
