//! Judges calls: by the policy, and by what persons have allowed.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use grants::KeyRing;

use super::{
    bench::{Bench, Unfinished},
    executions::Key,
    permission::{self, Void},
    records::{Records, hex, on_disk},
    target::Targets,
};
use crate::{
    policy::{Effect, Lifts},
    tools::{Callable, Decision, Plan, RequestHeaders, Saved, Settings, Site},
    workspace::Session,
};

/// How long a call may be judged, and wait for that.
pub(super) const PLAN_TIME: Duration = Duration::from_secs(5);
/// Calls that are judged at the same time.
const PLACES: usize = 8;

/// Knows what may run.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) settings: Arc<Settings>,
    pub(super) targets: Targets,
    pub(super) keys: KeyRing,
    /// Of the policy, with where grants for it are noted.
    pub(super) policy_version: String,
    /// What a permission may let run here.
    pub(super) lifts: Lifts,
    pub(super) bench: Bench,
}

/// Places for calls that are judged.
pub(super) fn bench() -> Bench {
    Bench::new(PLACES)
}

/// What comes with the calls of a session: its standing grants, and headers of whoever asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) session: String,
    pub(super) grants: Vec<Bytes>,
    pub(super) headers: RequestHeaders,
}

/// Too many calls are judged, so that one was not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy;

/// A call as it was judged.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) plan: Plan,
    /// What it would touch.
    pub(super) target: String,
    /// Whose standing permissions let it run.
    pub(super) allowed_by: String,
}

impl Judge {
    /// The arguments that are the tool's own of a call that may be for a cluster.
    pub(super) fn own_arguments<'a>(
        &self,
        cluster: &str,
        arguments_json: &'a str,
    ) -> Result<Cow<'a, str>, Elsewhere> {
        if !self.targets.are_of(cluster) {
            return Err(Elsewhere(cluster.to_owned()));
        }
        let arguments = if cluster.is_empty() { None } else { without_cluster(arguments_json) };
        Ok(arguments.map_or(Cow::Borrowed(arguments_json), Cow::Owned))
    }

    /// Judges where blocking is fine. What cannot be judged in time is refused.
    pub(super) async fn judge(
        &self,
        tool: &Callable,
        arguments_json: &str,
        account: &str,
        standing: &Standing,
    ) -> Result<Judged, Busy> {
        let session = Session { account: account.to_owned(), id: standing.session.clone() };
        let (own, arguments, targets) = (tool.clone(), arguments_json.to_owned(), self.targets.clone());
        let (settings, keys, grants) =
            (Arc::clone(&self.settings), self.keys.clone(), standing.grants.clone());
        let (lifts, headers) = (self.lifts, standing.headers.clone());
        let judged = self.bench.run(PLAN_TIME, move || {
            let target = targets.of(&own);
            let given = permission::standing(&grants, &session, &own, &target, &keys, now());
            let site = Site { session, ..settings.site.clone() };
            let settings = Settings { site, headers, ..(*settings).clone() };
            let with = |saved: Saved| {
                let settings = Settings { saved, ..settings.clone() };
                settings.saved.lift(own.plan(&settings, &arguments), &own.name, &arguments)
            };
            let runs = |plan: &Plan| matches!(plan.decision, Decision::Allow(_));
            let plan = with(given.all());
            if !lifts.allow(plan.effect) {
                let plan = unlifted(&own, settings, &arguments);
                return Judged { plan, target, allowed_by: String::new() };
            }
            let allowed_by =
                if runs(&plan) { given.needed(|saved| runs(&with(saved))) } else { String::new() };
            Judged { plan, target, allowed_by }
        });
        match judged.await {
            Ok(judged) => Ok(judged),
            Err(Unfinished::Busy) => Err(Busy),
            Err(Unfinished::Stuck) => Ok(Judged {
                plan: Plan {
                    description: tool.name.clone(),
                    effect: Effect::Mutation,
                    decision: Decision::Deny(
                        "refused: The call could not be judged. Write it in a simpler way.".to_owned(),
                    ),
                },
                target: String::new(),
                allowed_by: String::new(),
            }),
        }
    }

    /// Whether a person could allow what the policy asks about.
    pub(super) fn can_ask(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Takes a person's permission for a call, which uses it up.
    pub(super) async fn take(
        &self,
        grant: Bytes,
        key: &Key,
        tool: &str,
        arguments_json: &str,
        target: String,
        records: &Records,
    ) -> Result<(), Void> {
        let (key, tool, arguments_json) = (key.clone(), tool.to_owned(), arguments_json.to_owned());
        let (keys, records, policy_version) =
            (self.keys.clone(), records.clone(), self.policy_version.clone());
        on_disk(move || {
            let call = permission::Call {
                key: &key,
                tool: &tool,
                arguments_json: &arguments_json,
                policy_version: &policy_version,
                target: &target,
            };
            permission::take(&grant, &call, &keys, &records, now())
        })
        .await
    }
}

/// A call came to the wrong executor.
#[derive(Debug, thiserror::Error)]
#[error("the call is for the cluster `{0}`, and this executor is of another one")]
pub(super) struct Elsewhere(String);

/// Arguments without the one that says where a call goes.
fn without_cluster(arguments_json: &str) -> Option<String> {
    let mut arguments: serde_json::Map<_, _> = serde_json::from_str(arguments_json).ok()?;
    arguments.remove("cluster").map(|_| serde_json::Value::from(arguments).to_string())
}

/// A plan where no permission counts: what would need one is forbidden.
fn unlifted(tool: &Callable, settings: Settings, arguments_json: &str) -> Plan {
    let settings = Settings { saved: Saved::default(), ..settings };
    let Plan { description, effect, decision } = tool.plan(&settings, arguments_json);
    let decision = match decision {
        Decision::Ask(ask) => {
            Decision::Deny(format!("{} No permission from outside lifts this here.", ask.refusal))
        }
        Decision::Allow(_) | Decision::Deny(_) => decision,
    };
    Plan { description, effect, decision }
}

/// A digest of everything that could change what is said of a call.
pub(crate) fn policy_version(settings: &Settings, toolsets: &str) -> String {
    let Settings { policy, bash, kubectl, jq, .. } = settings;
    let version = env!("CARGO_PKG_VERSION");
    let all =
        format!("{version} {} {policy:?} {bash:?} {kubectl:?} {jq:?} {toolsets}", crate::policy::VERSION);
    hex(&grants::sha256(&all)[..8])
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
