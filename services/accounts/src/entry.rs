//! Whose key it is that somebody presents.

use std::time::Duration;

use runtime::{
    scope::Scopes,
    token::{Token, same},
};
use store::{Account, Credential, CredentialKind};
use wire::agent::Caller;

use crate::{
    Registry,
    registry::{later, now},
};

/// The time that may pass before it is noted again that a key was used.
const COARSE: Duration = Duration::from_secs(600);

/// Why somebody does not get in.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// No key, or none that counts. Which of both is nobody's business.
    #[error("invalid or missing API key")]
    Unknown,
    /// The key may not be used for this.
    #[error("the API key lacks the permission `{0}`")]
    Scope(runtime::scope::Scope),
    /// The key is not for this kind of request.
    #[error("the API key is not for this")]
    NotForThis,
    /// Too often.
    #[error("too many requests with this key or of this account; try again in {} s", seconds(.0))]
    TooMany(Duration),
    /// It cannot be found out now.
    #[error("keys cannot be checked now: {0}")]
    Unavailable(#[from] store::Error),
}

/// Who somebody is.
#[derive(Clone, Debug)]
pub struct Known {
    /// For whom requests are made.
    pub caller: Caller,
    /// What they may be.
    pub scopes: Scopes,
}

impl Registry {
    /// Whose key it is, counted as one request.
    pub async fn admit(&self, id: &str, digest: &[u8]) -> Result<Known, Denied> {
        let (key, account) = self.find(id, digest, CredentialKind::Key).await?;
        self.limits.count(&key.id, &key.account).map_err(Denied::TooMany)?;
        Ok(Known {
            scopes: Scopes::read(key.scopes.iter().map(String::as_str)),
            caller: Caller {
                account: key.account,
                principal: key.id,
                clusters: key.clusters,
                default_model: account.default_model,
            },
        })
    }

    /// The credential that a text proves.
    pub(crate) async fn prove(&self, text: &str, kind: CredentialKind) -> Result<Credential, Denied> {
        let token = Token::read(text).ok_or(Denied::Unknown)?;
        Ok(self.find(token.id(), &token.digest(), kind).await?.0)
    }

    /// A credential that counts, and its account, which is on.
    async fn find(
        &self,
        id: &str,
        digest: &[u8],
        kind: CredentialKind,
    ) -> Result<(Credential, Account), Denied> {
        let now = now();
        let found = self.store.credential(id).await?.ok_or(Denied::Unknown)?;
        if !same(&found.digest, digest) || found.kind != kind || !found.counts(now) {
            return Err(Denied::Unknown);
        }
        let account = self.store.account(&found.account).await?;
        let account = account.filter(|account| account.disabled.is_none()).ok_or(Denied::Unknown)?;
        if found.used.is_none_or(|last| later(last, COARSE) <= now)
            && let Err(error) = self.store.credential_used(id, now).await
        {
            tracing::warn!(%error, "it was not noted that a key was used");
        }
        Ok((found, account))
    }
}

/// Whole seconds, and enough of them.
pub(crate) fn seconds(wait: &Duration) -> u64 {
    wait.as_secs().saturating_add(1)
}
