//! Who asks, as the key tells.

use grants::Decider;
use runtime::{
    clock,
    scope::{Scope, Scopes},
};
use wire::{account::AuthenticateResponse, agent::Caller};

use crate::passing::PassedHeaders;

/// The account of whoever needs no key of an account.
const DEFAULT_ACCOUNT: &str = "default";
/// How whoever has the server's own key is called.
const OPERATOR: &str = "operator";

/// Who asks: every request that gets past `auth` has one.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// For whom the agent is asked.
    pub(crate) caller: Caller,
    pub(crate) scopes: Scopes,
    /// What their request brings along for toolsets.
    pub(crate) headers: PassedHeaders,
}

impl Asker {
    /// Whoever has the server's own key.
    pub(crate) fn operator() -> Self {
        Self::default_account(OPERATOR, Scopes::all())
    }

    /// Whoever asks a server that wants no key. Accounts and keys are not made in nobody's name.
    pub(crate) fn nobody() -> Self {
        Self::default_account("", Scopes::of([Scope::Ask, Scope::Audit, Scope::Metrics]))
    }

    fn default_account(principal: &str, scopes: Scopes) -> Self {
        let (account, principal) = (DEFAULT_ACCOUNT.to_owned(), principal.to_owned());
        let caller = Caller { account, principal, ..Caller::default() };
        Self { caller, scopes, headers: PassedHeaders::default() }
    }

    /// Whoever has a key that the agent keeps.
    pub(crate) fn known(answer: AuthenticateResponse) -> Self {
        let scopes = Scopes::read(answer.scopes.iter().map(String::as_str));
        Self { caller: answer.caller.unwrap_or_default(), scopes, headers: PassedHeaders::default() }
    }

    /// The one who decides, if they decide now.
    pub(crate) fn decides(&self) -> Decider<'_> {
        let Caller { account, principal, .. } = &self.caller;
        Decider { account, principal, now: clock::unix_nanos() / 1_000_000_000 }
    }
}
