//! Approvals: what a person may decide, and what a decision is worth. No dialect is known here.
//!
//! * `token`: a call that waits for a person, signed, so that a client can hold it
//! * this file: a decision about such a call becomes a grant, which an executor trusts

mod token;

use domain::{Rule, ToolProfile};
use grants::{Decider, KeyRing, SigningKey};
use wire::executor::{ExactScope, ParameterPatterns, StandingScope, grant::Scope};

pub(crate) use token::{BadToken, PendingCall};

/// Signs calls that wait and what people decide about them.
#[derive(Clone, Debug)]
pub(crate) struct Approvals {
    key: SigningKey,
    keys: KeyRing,
}

/// Where rules of a client count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum There<'a> {
    /// For what a call would have touched.
    Target(&'a str),
    /// For tools of this profile.
    Profile(ToolProfile),
}

impl Approvals {
    pub(crate) fn new(key: SigningKey) -> Self {
        let keys = [key.public()].into_iter().collect();
        Self { key, keys }
    }

    /// A text that a client can hold while a call waits.
    pub(crate) fn token(&self, call: &PendingCall) -> String {
        token::issue(&self.key, call)
    }

    /// The call that a text stands for.
    pub(crate) fn pending(&self, token: &str, by: Decider<'_>) -> Result<PendingCall, BadToken> {
        let call = token::read(&self.keys, token, by.now)?;
        if call.account == by.account { Ok(call) } else { Err(BadToken::Foreign) }
    }

    /// The permission to run a call, once.
    pub(crate) fn exact(&self, call: &PendingCall, by: Decider<'_>) -> Vec<u8> {
        let scope = ExactScope {
            execution_id: format!("{}/{}", call.run, call.call),
            tool: call.tool.clone(),
            arguments_sha256: call.arguments.clone().into(),
            policy_version: call.policy.clone(),
            target: call.target.clone(),
        };
        grants::allow(&self.key, Scope::Exact(scope), by)
    }

    /// The permission to run what begins with these words. Only what the executor offered can be had.
    pub(crate) fn standing(
        &self,
        call: &PendingCall,
        session: &str,
        wanted: Vec<String>,
        by: Decider<'_>,
    ) -> Option<Vec<u8>> {
        let prefixes: Vec<_> = wanted.into_iter().filter(|prefix| call.prefixes.contains(prefix)).collect();
        if prefixes.is_empty() {
            return None;
        }
        let (session, tool) = (session.to_owned(), call.tool.clone());
        let target = call.target.clone();
        let scope = StandingScope { session, tool, prefixes, target, ..StandingScope::default() };
        Some(grants::allow(&self.key, Scope::Standing(scope), by))
    }

    /// The permission to run what a client's rules allow, in a session and there.
    pub(crate) fn by_rules(
        &self,
        rules: &[Rule],
        session: &str,
        there: There<'_>,
        by: Decider<'_>,
    ) -> Vec<Vec<u8>> {
        let (target, profile) = match there {
            There::Target(target) => (target, ""),
            There::Profile(profile) => ("", profile.name()),
        };
        let grant = |rule: &Rule| {
            let patterns = ParameterPatterns { patterns: rule.parameters.clone().into_iter().collect() };
            let scope = StandingScope {
                session: session.to_owned(),
                tool: rule.tool.clone(),
                prefixes: Vec::new(),
                rules: vec![patterns],
                target: target.to_owned(),
                profile: profile.to_owned(),
            };
            grants::allow(&self.key, Scope::Standing(scope), by)
        };
        rules.iter().map(grant).collect()
    }

    /// The session of a standing permission that still counts for this account.
    pub(crate) fn session(&self, signed: &[u8], by: Decider<'_>) -> Option<String> {
        let grant = grants::verify(&self.keys, signed, by.now).ok()?;
        match grant.scope {
            Some(Scope::Standing(standing)) if grant.account == by.account => Some(standing.session),
            Some(Scope::Standing(_) | Scope::Exact(_)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: Decider<'_> = Decider { account: "default", principal: "ada", now: 1_800_000_000 };

    #[test]
    fn a_decision_is_worth_what_was_asked_and_no_more() {
        let approvals = Approvals::new(SigningKey::generate().unwrap());
        let call = token::tests::call(BY.now);
        let keys = [approvals.key.public()].into_iter().collect();
        let grant = grants::verify(&keys, &approvals.exact(&call, BY), BY.now).unwrap();
        let Some(Scope::Exact(exact)) = grant.scope else { panic!("{grant:?}") };
        assert_eq!((exact.execution_id.as_str(), exact.policy_version.as_str()), ("run_1/call_1", "p1"));
        assert!(grants::verify(&keys, &approvals.exact(&call, BY), BY.now + 600).is_err());

        let invented = vec!["rm".to_owned()];
        assert_eq!(approvals.standing(&call, "s", invented, BY), None);
        let standing = approvals.standing(&call, "s", vec!["mkdir".into(), "rm".into()], BY).unwrap();
        let Some(Scope::Standing(scope)) = grants::verify(&keys, &standing, BY.now).unwrap().scope else {
            panic!("no standing grant")
        };
        assert_eq!((scope.prefixes.as_slice(), scope.target.as_str()), (&["mkdir".to_owned()][..], "host"));
        assert_eq!(approvals.session(&standing, BY).as_deref(), Some("s"));
        assert_eq!(approvals.session(&standing, Decider { account: "other", ..BY }), None);
        assert_eq!(approvals.session(&standing, Decider { now: BY.now + 24 * 3600, ..BY }), None);
        assert_eq!(approvals.session(&approvals.exact(&call, BY), BY), None);
    }

    #[test]
    fn a_token_belongs_to_its_account() {
        let approvals = Approvals::new(SigningKey::generate().unwrap());
        let call = token::tests::call(BY.now);
        let token = approvals.token(&call);
        assert_eq!(approvals.pending(&token, BY), Ok(call));
        assert_eq!(approvals.pending(&token, Decider { account: "x", ..BY }), Err(BadToken::Foreign));
    }
}
