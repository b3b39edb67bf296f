//! What a run at the terminal waits for, put to the person who sits there.

use std::io::{IsTerminal as _, Write as _};

use domain::{Approval, Run, ToolCall, ToolEffect};
use grants::{Decider, SigningKey};
use runtime::clock;
use wire::{
    agent::{Decision, decision},
    executor::{ExactScope, grant::Scope},
};

use crate::terminal::harmless;

/// The account of whoever sits at the terminal.
const ACCOUNT: &str = "default";
const DENIED: &str = "Not run: the user refused this call.";

/// A suspended run and the calls for which it waits.
pub(super) struct Waiting {
    pub(super) run_id: String,
    pub(super) run: Run,
    pub(super) calls: Vec<(ToolCall, Approval)>,
}

/// Whether somebody sits there.
pub(super) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Has each call decided. Waits for the person, off the asynchronous threads.
pub(super) async fn decide(waiting: &Waiting, key: &SigningKey) -> anyhow::Result<Vec<Decision>> {
    let mut decisions = Vec::new();
    for (call, approval) in &waiting.calls {
        let question = question(call, approval);
        let allowed = tokio::task::spawn_blocking(move || ask(&question)).await??;
        let decision = if allowed {
            decision::Decision::Grant(grant(&waiting.run_id, call, approval, key))
        } else {
            decision::Decision::Denial(DENIED.to_owned())
        };
        decisions.push(Decision {
            run_id: waiting.run_id.clone(),
            call_id: call.id.as_str().to_owned(),
            decision: Some(decision),
            standing_grants: Vec::new(),
        });
    }
    Ok(decisions)
}

fn question(call: &ToolCall, approval: &Approval) -> String {
    let effect = match approval.effect {
        ToolEffect::Read => "only reads",
        ToolEffect::SensitiveRead => "reads what may be secret",
        ToolEffect::Mutation => "may change something",
    };
    let what = if approval.command.is_empty() {
        format!("{} {}", call.name, call.arguments)
    } else {
        approval.command.clone()
    };
    let place = if approval.target.is_empty() { String::new() } else { format!(" on {}", approval.target) };
    format!("\n{what}\n\n  It {effect}{place}. {}\n  Run it? [y/N] ", approval.reason)
}

fn ask(question: &str) -> std::io::Result<bool> {
    let mut terminal = std::io::stderr();
    terminal.write_all(harmless(question).as_bytes())?;
    terminal.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn grant(run_id: &str, call: &ToolCall, approval: &Approval, key: &SigningKey) -> Vec<u8> {
    let scope = ExactScope {
        execution_id: format!("{run_id}/{}", call.id),
        tool: call.name.clone(),
        arguments_sha256: grants::sha256(&call.arguments).into(),
        policy_version: approval.policy.clone(),
        target: approval.target.clone(),
    };
    let now = clock::unix_nanos() / 1_000_000_000;
    let principal = std::env::var("USER").unwrap_or_default();
    grants::allow(key, Scope::Exact(scope), Decider { account: ACCOUNT, principal: &principal, now })
}
