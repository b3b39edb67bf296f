//! The client's rules about calls, as they are in a run: they change as people say "always" and rules are used up.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use domain::{Approval, CallId, EventKind, Gate, Permissions, ToolCall, ToolEffect, ToolPlan, ToolVerdict};

/// Why a call is asked about that an executor would let run.
const UNMENTIONED: &str = "The user's rules do not let this call run unasked.";

/// A call as the owner of its tool judges it.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) plan: ToolPlan,
    /// What a person would be asked to allow.
    pub(super) facts: Approval,
}

impl Judged {
    /// A call that can change nothing outside of its run.
    pub(super) fn harmless(plan: ToolPlan) -> Self {
        let facts = Approval {
            reason: String::new(),
            command: String::new(),
            target: String::new(),
            effect: ToolEffect::Read,
            prefixes: Vec::new(),
            policy: String::new(),
        };
        Self { plan, facts }
    }
}

/// The rules of a run, shared by its agents. Without any, only executors say what runs unasked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Option<Arc<Mutex<State>>>);

#[derive(Debug)]
struct State {
    permissions: Permissions,
    /// Calls that wait for a person.
    asked: HashMap<CallId, ToolCall>,
}

impl Rules {
    pub(crate) fn new(permissions: Option<Permissions>) -> Self {
        let state = |permissions| State { permissions, asked: HashMap::new() };
        Self(permissions.map(|permissions| Arc::new(Mutex::new(state(permissions)))))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        // Nothing in here panics half-way through a change.
        let mut state = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(change(&mut state))
    }

    /// A call's plan, the rules considered: they can forbid it and have it asked about, never let it run.
    pub(super) fn judge(&self, call: &ToolCall, judged: Judged) -> ToolPlan {
        let Judged { plan, facts } = judged;
        let verdict = match plan.verdict.clone() {
            verdict @ (ToolVerdict::Allow | ToolVerdict::AskPerson(_)) => {
                self.with(|state| state.judge(call, verdict, facts))
            }
            ToolVerdict::Refuse(_) | ToolVerdict::Forbid(_) | ToolVerdict::AskClient => None,
        };
        ToolPlan { verdict: verdict.unwrap_or_else(|| plan.verdict.clone()), ..plan }
    }

    /// Takes note of what happens in the run.
    pub(crate) fn hear<'a>(&self, events: impl IntoIterator<Item = &'a EventKind>) {
        self.with(|state| events.into_iter().for_each(|event| state.hear(event)));
    }

    /// Uses up the rules of calls that ran before this process came.
    pub(crate) fn use_up<'a>(&self, events: impl IntoIterator<Item = &'a EventKind>) {
        self.with(|state| {
            for event in events {
                if let EventKind::ToolStarted { call, gate: Gate::Open, .. } = event {
                    let parameters = wire::parameters(&call.arguments).unwrap_or_default();
                    state.permissions.allow(&call.name, &parameters);
                }
            }
        });
    }
}

impl State {
    fn judge(&mut self, call: &ToolCall, verdict: ToolVerdict, facts: Approval) -> ToolVerdict {
        let parameters = wire::parameters(&call.arguments).unwrap_or_default();
        if let Some(why) = self.permissions.denial(call, &parameters) {
            return ToolVerdict::Forbid(why.to_owned());
        }
        match verdict {
            ToolVerdict::Allow if self.permissions.allow(&call.name, &parameters) => ToolVerdict::Allow,
            ToolVerdict::Allow if self.permissions.reads && facts.effect == ToolEffect::Read => {
                ToolVerdict::Allow
            }
            ToolVerdict::Allow => {
                ToolVerdict::AskPerson(Approval { reason: UNMENTIONED.to_owned(), ..facts })
            }
            verdict => verdict,
        }
    }

    fn hear(&mut self, event: &EventKind) {
        match event {
            EventKind::ToolStarted { call, gate: Gate::Waits, .. } => {
                self.asked.insert(call.id.clone(), call.clone());
            }
            EventKind::CallAllowed { call, permission } => {
                if let Some(call) = self.asked.remove(call).filter(|_| permission.always) {
                    let parameters = wire::parameters(&call.arguments).unwrap_or_default();
                    self.permissions.always(&call.name, &parameters);
                }
            }
            EventKind::ToolFinished { call, .. } => drop(self.asked.remove(call)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Permission, Rule, RunId};

    use super::*;

    fn call(id: &str, command: &str) -> ToolCall {
        let arguments = format!("{{\"command\":\"{command}\"}}");
        ToolCall { id: CallId::new(id), name: "bash".into(), arguments }
    }

    fn judged(call: &ToolCall, verdict: ToolVerdict, effect: ToolEffect) -> Judged {
        let facts = Approval {
            reason: String::new(),
            command: "c".into(),
            target: "t".into(),
            effect,
            prefixes: Vec::new(),
            policy: "p".into(),
        };
        let (description, toolset) = (String::new(), None);
        Judged {
            plan: ToolPlan { call: call.id.clone(), description, toolset, cluster: None, by: None, verdict },
            facts,
        }
    }

    fn rule(command: &str) -> Rule {
        Rule { tool: "bash".into(), parameters: [("command".to_owned(), command.to_owned())].into() }
    }

    fn started(call: ToolCall, gate: Gate) -> EventKind {
        EventKind::ToolStarted {
            call,
            description: String::new(),
            toolset: None,
            cluster: None,
            gate,
            by: None,
        }
    }

    #[test]
    fn what_no_rule_mentions_is_asked_and_reads_only_where_they_need_a_rule() {
        let verdict = |permissions: Option<Permissions>, verdict, effect| {
            let call = call("c", "ls x");
            Rules::new(permissions).judge(&call, judged(&call, verdict, effect)).verdict
        };
        let some = |reads| Some(Permissions { reads, ..Permissions::default() });
        let asks = |verdict: &ToolVerdict| matches!(verdict, ToolVerdict::AskPerson(approval) if approval.policy == "p" && approval.reason == UNMENTIONED);
        use ToolEffect::{Mutation, Read};
        assert_eq!(verdict(None, ToolVerdict::Allow, Mutation), ToolVerdict::Allow);
        assert_eq!(verdict(some(true), ToolVerdict::Allow, Read), ToolVerdict::Allow);
        assert!(asks(&verdict(some(true), ToolVerdict::Allow, Mutation)));
        assert!(asks(&verdict(some(false), ToolVerdict::Allow, Read)));
        let allowed = Permissions { allow: vec![rule("ls *")], ..Permissions::default() };
        assert_eq!(verdict(Some(allowed.clone()), ToolVerdict::Allow, Mutation), ToolVerdict::Allow);
        let refused = ToolVerdict::Refuse("no".into());
        assert_eq!(verdict(Some(allowed.clone()), refused.clone(), Read), refused, "a rule lifts no refusal");
        let of = domain::Denied::Calls(rule("ls *"));
        let denied = Permissions { deny: vec![domain::Denial { of, reason: Some("no".into()) }], ..allowed };
        let forbidden = ToolVerdict::Forbid("no".into());
        assert_eq!(verdict(Some(denied), ToolVerdict::Allow, Read), forbidden);
    }

    #[test]
    fn always_counts_from_the_decision_on() {
        let asked = call("c1", "mkdir x");
        let permission =
            Permission { run: RunId::new("r"), grant: Vec::new(), standing: Vec::new(), always: true };
        let events =
            [started(asked.clone(), Gate::Waits), EventKind::CallAllowed { call: asked.id, permission }];
        let next = call("c2", "mkdir y");
        let runs = |rules: &Rules| {
            let plan = rules.judge(&next, judged(&next, ToolVerdict::Allow, ToolEffect::Mutation));
            plan.verdict == ToolVerdict::Allow
        };
        let live = Rules::new(Some(Permissions::default()));
        assert!(!runs(&live));
        live.hear(&events);
        assert!(runs(&live));
    }

    #[test]
    fn a_rule_for_once_is_used_up_also_after_a_take_over() {
        let once =
            || Rules::new(Some(Permissions { allow_once: vec![rule("id")], ..Permissions::default() }));
        let id = call("c1", "id");
        let runs = |rules: &Rules| {
            rules.judge(&id, judged(&id, ToolVerdict::Allow, ToolEffect::Read)).verdict == ToolVerdict::Allow
        };
        let live = once();
        assert!(runs(&live));
        live.hear(&[started(id.clone(), Gate::Open)]);
        assert!(!runs(&live));
        let later = once();
        later.use_up(&[started(id.clone(), Gate::Open)]);
        assert!(!runs(&later));
    }
}
