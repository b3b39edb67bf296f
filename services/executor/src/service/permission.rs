//! What persons have allowed: grants, and whether they cover a call.

use std::collections::BTreeMap;

use domain::Rule;
use grants::KeyRing;
use wire::executor::{ExactScope, Grant, ParameterPatterns, StandingScope, grant::Scope};

use super::{executions::Key, records::Records, target::same_place};
use crate::{
    policy::Prefix,
    tools::{Callable, Saved},
    workspace::Session,
};

/// The tools whose standing grants are beginnings of commands.
const COMMANDS: [&str; 2] = ["bash", "exec"];
/// Standing grants that count: the newest.
const MOST_STANDING: usize = 256;

/// A call as an exact grant must name it.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) key: &'a Key,
    pub(super) tool: &'a str,
    pub(super) arguments_json: &'a str,
    pub(super) policy_version: &'a str,
    pub(super) target: &'a str,
}

/// Why a grant does not allow a call.
#[derive(Debug, thiserror::Error)]
pub(super) enum Void {
    #[error(transparent)]
    Invalid(#[from] grants::Invalid),
    #[error("it belongs to another account")]
    Account,
    #[error("it is a permission for later calls, not for this one")]
    NotExact,
    #[error("it is for another execution")]
    Execution,
    #[error("it is for another tool")]
    Tool,
    #[error("the call is another one than was shown")]
    Arguments,
    #[error("the policy has changed since")]
    Policy,
    #[error("it is for another executor, where it is noted whether it was used")]
    Elsewhere,
    #[error("it is for {shown}, and the call would touch {now}")]
    Target { shown: String, now: String },
    #[error("it is used up")]
    Used,
    #[error("that it is used cannot be noted: {0}")]
    Unnoted(#[from] std::io::Error),
}

/// What a grant must name of those that judge: the version of the policy, and where grants for it are noted. Of several
/// executors with one policy, so only those accept a grant that see whether it was used.
pub(super) fn version(policy: &str, place: &str) -> String {
    format!("{policy}@{place}")
}

fn place(version: &str) -> Option<&str> {
    version.split_once('@').map(|(_, place)| place)
}

/// Takes a person's permission for one call, which uses it up.
pub(super) fn take(
    grant: &[u8],
    call: &Call<'_>,
    keys: &KeyRing,
    records: &Records,
    now: i64,
) -> Result<(), Void> {
    let permitted = grants::verify(keys, grant, now)?;
    if !same_account(&permitted, call.key) {
        return Err(Void::Account);
    }
    match permitted.scope {
        Some(Scope::Exact(scope)) => covers(&scope, call)?,
        Some(Scope::Standing(_)) | None => return Err(Void::NotExact),
    }
    // The same permission signed twice is one.
    let id = format!("{}\0{}", call.key.account, call.key.id);
    if records.use_grant(id.as_bytes())? { Ok(()) } else { Err(Void::Used) }
}

fn covers(scope: &ExactScope, call: &Call<'_>) -> Result<(), Void> {
    if scope.execution_id != call.key.id {
        return Err(Void::Execution);
    }
    if scope.tool != call.tool {
        return Err(Void::Tool);
    }
    if scope.arguments_sha256 != grants::sha256(call.arguments_json) {
        return Err(Void::Arguments);
    }
    if place(&scope.policy_version) != place(call.policy_version) {
        return Err(Void::Elsewhere);
    }
    if scope.policy_version != call.policy_version {
        return Err(Void::Policy);
    }
    if scope.target != call.target {
        return Err(Void::Target { shown: scope.target.clone(), now: call.target.to_owned() });
    }
    Ok(())
}

/// What the standing grants of a session allow a tool there, by who gave them. Those that do not count are named in the
/// log.
pub(super) fn standing(
    signed: &[impl AsRef<[u8]>],
    session: &Session,
    tool: &Callable,
    target: &str,
    keys: &KeyRing,
    now: i64,
) -> Given {
    let mut given = Given::default();
    for grant in signed.iter().rev().take(MOST_STANDING) {
        match grants::verify(keys, grant.as_ref(), now) {
            Err(error) => tracing::info!(%error, "a standing grant does not count"),
            Ok(grant) if !is_same(&grant.account, &session.account) => {
                tracing::info!("a standing grant belongs to another account");
            }
            Ok(Grant { scope: Some(Scope::Standing(scope)), principal, .. })
                if scope.session == session.id =>
            {
                if scope.tool == tool.name && is_there(&scope, tool, target) {
                    add(given.0.entry(principal).or_default(), scope);
                }
            }
            Ok(_) => tracing::info!("a standing grant belongs to another session"),
        }
    }
    given
}

/// What persons allow, by who they are.
#[derive(Debug, Default)]
pub(super) struct Given(BTreeMap<String, Saved>);

impl Given {
    /// All of it.
    pub(super) fn all(&self) -> Saved {
        let mut all = Saved::default();
        for Saved { commands, whole, rules } in self.0.values().cloned() {
            all.commands.extend(commands);
            all.whole |= whole;
            all.rules.extend(rules);
        }
        all
    }

    /// Whose permissions it takes, of as few as will do, separated by commas. Empty if it takes none.
    pub(super) fn needed(mut self, allows: impl Fn(Saved) -> bool) -> String {
        if self.0.is_empty() || allows(Saved::default()) {
            return String::new();
        }
        for principal in self.0.keys().cloned().collect::<Vec<_>>() {
            let Some(saved) = self.0.remove(&principal) else { continue };
            if !allows(self.all()) {
                self.0.insert(principal, saved);
            }
        }
        self.0.into_keys().collect::<Vec<_>>().join(", ")
    }
}

fn is_there(scope: &StandingScope, tool: &Callable, target: &str) -> bool {
    match scope.target.as_str() {
        "" => scope.profile.parse() == Ok(tool.profile()),
        granted => same_place(granted, target),
    }
}

fn add(saved: &mut Saved, scope: StandingScope) {
    let rule = |patterns: ParameterPatterns| Rule {
        tool: scope.tool.clone(),
        parameters: patterns.patterns.into_iter().collect(),
    };
    saved.rules.extend(scope.rules.into_iter().map(rule));
    if COMMANDS.contains(&scope.tool.as_str()) {
        saved.commands.extend(scope.prefixes.iter().filter_map(|prefix| Prefix::new(prefix)));
    } else {
        saved.whole |= scope.prefixes.contains(&scope.tool);
    }
}

fn same_account(grant: &Grant, key: &Key) -> bool {
    is_same(&grant.account, &key.account)
}

/// An empty name is the default account's.
fn is_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|account| if account.is_empty() { "default" } else { account });
    one == other
}
