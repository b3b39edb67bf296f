//! `sleuth audit`.

use std::io::Write as _;

use anyhow::Context as _;
use wire::account::{
    AuditEntry, AuditRequest,
    audit_entry::{Asked, What},
};

use crate::{cli::Audit, services, terminal::print_line};

pub(super) async fn run(context: super::Context, flags: Audit) -> anyhow::Result<()> {
    let mut client = services::accounts(&context.file, &flags.at).await?;
    let run_id = flags.run.unwrap_or_default();
    let time = |text: Option<String>| text.map(|text| text.parse()).transpose();
    let request = AuditRequest {
        account: flags.account,
        runs: flags.runs,
        run_id,
        principal: flags.by,
        cluster: flags.cluster,
        kinds: flags.kinds,
        since: time(flags.since).context("--since: write a time as 2030-01-31T12:00:00Z")?,
        before_run_id: flags.before,
        until: time(flags.until).context("--until: write a time as 2030-01-31T12:00:00Z")?,
    };
    let mut entries = client.audit(request).await?.into_inner();
    while let Some(entry) = entries.message().await? {
        if flags.at.json {
            // One object a line: a trail is read by programs while it comes.
            writeln!(std::io::stdout(), "{}", as_json(&entry))?;
        } else {
            print_line(&as_line(&entry))?;
        }
    }
    Ok(())
}

fn as_line(entry: &AuditEntry) -> String {
    let time = entry.time.map(|at| at.to_string()).unwrap_or_default();
    let what = match &entry.what {
        Some(What::Asked(asked)) => {
            let who = if entry.principal.is_empty() { "somebody" } else { &entry.principal };
            let question = one_line(asked.question.lines().next().unwrap_or_default());
            match asked.model.as_str() {
                "" => format!("{who} said: {question}"),
                model => format!("{who} asked {model}: {question}"),
            }
        }
        Some(What::Began(began)) => {
            let by = if began.by.is_empty() { String::new() } else { format!(" (allowed by {})", began.by) };
            format!("began {} {}: {}{by}", began.call_id, began.tool, one_line(&began.description))
        }
        Some(What::Waits(waits)) => {
            format!(
                "waits {} at {}: {} ({})",
                waits.call_id,
                waits.target,
                one_line(&waits.command),
                waits.reason
            )
        }
        Some(What::Allowed(allowed)) => {
            let by = if allowed.by.is_empty() { "somebody" } else { &allowed.by };
            format!("{by} allowed {} {}: {}", allowed.call_id, allowed.tool, one_line(&allowed.description))
        }
        Some(What::Ended(ended)) => {
            let code = ended.return_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
            let told = [&ended.command, &ended.error].map(|text| one_line(text));
            format!("ended {} {}{code}{}", ended.call_id, ended.status, with_colons(&told))
        }
        Some(What::Closed(closed)) => {
            format!("run {}{}", closed.outcome, with_colons(&[one_line(&closed.reason)]))
        }
        None => "something that this version does not know".to_owned(),
    };
    let at = if entry.cluster.is_empty() { String::new() } else { format!("[{}] ", entry.cluster) };
    format!("{time} {} {at}{what}", entry.run_id)
}

/// What there is to tell, each behind a colon.
fn with_colons(texts: &[String]) -> String {
    texts.iter().filter(|text| !text.is_empty()).map(|text| format!(": {text}")).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn as_json(entry: &AuditEntry) -> serde_json::Value {
    let (kind, what) = match &entry.what {
        Some(What::Asked(asked)) => {
            let Asked { question, model, clusters } = asked;
            ("asked", serde_json::json!({ "question": question, "model": model, "clusters": clusters }))
        }
        Some(What::Began(began)) => (
            "began",
            serde_json::json!({
                "call_id": began.call_id, "tool": began.tool, "description": began.description,
                "arguments": began.arguments_json, "by": began.by,
            }),
        ),
        Some(What::Waits(waits)) => (
            "waits",
            serde_json::json!({
                "call_id": waits.call_id, "command": waits.command, "target": waits.target,
                "reason": waits.reason,
            }),
        ),
        Some(What::Allowed(allowed)) => (
            "allowed",
            serde_json::json!({
                "call_id": allowed.call_id, "tool": allowed.tool, "description": allowed.description,
                "arguments": allowed.arguments_json, "by": allowed.by,
            }),
        ),
        Some(What::Ended(ended)) => (
            "ended",
            serde_json::json!({
                "call_id": ended.call_id, "status": ended.status, "command": ended.command,
                "return_code": ended.return_code, "error": ended.error,
            }),
        ),
        Some(What::Closed(closed)) => {
            ("closed", serde_json::json!({ "outcome": closed.outcome, "reason": closed.reason }))
        }
        None => ("unknown", serde_json::Value::Null),
    };
    serde_json::json!({
        "time": entry.time.map(|at| at.to_string()), "account": entry.account, "run_id": entry.run_id,
        "position": entry.position, "principal": entry.principal, "cluster": entry.cluster, "kind": kind, "what": what,
    })
}
