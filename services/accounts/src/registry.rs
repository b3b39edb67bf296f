//! Accounts and the keys of clients: made, listed, ended.

use std::{sync::Arc, time::Duration};

use domain::Timestamp;
use runtime::{
    clock,
    scope::{Scope, UnknownScope},
};
use store::{Account, Credential, CredentialKind, Store};

use crate::{
    limits::{Limits, Rates},
    secret::{self, NoRandomness},
};

/// The longest id of an account.
const LONGEST_ID: usize = 64;
/// How long a cluster may take to join.
const JOIN_LIFE: Duration = Duration::from_secs(3600);

/// Why accounts and keys stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The id cannot be used.
    #[error("the id of an account has 1 to {LONGEST_ID} letters, digits, `.`, `_` and `-`")]
    BadId,
    /// The id is taken.
    #[error("there is an account `{0}` already")]
    Taken(String),
    /// There is no such account.
    #[error("there is no account `{0}`")]
    NoAccount(String),
    /// There is no such key, or it does not count any more.
    #[error("no key `{0}` counts")]
    NoKey(String),
    /// A scope that there is not.
    #[error(transparent)]
    Scope(#[from] UnknownScope),
    /// A token to join that does not say which cluster may.
    #[error("a token to join names exactly one cluster")]
    OneCluster,
    /// A key that ends before it begins.
    #[error("the key would have ended already")]
    Over,
    /// Keys of clusters are not made but got by joining.
    #[error("clusters get their keys by joining")]
    NotMade,
    /// There is no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// The key that is to be.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The account that it acts for.
    pub account: String,
    /// What it is for.
    pub kind: CredentialKind,
    /// What people call it.
    pub name: String,
    /// What it may be used for. None means to ask.
    pub scopes: Vec<String>,
    /// The only clusters that can be reached with it.
    pub clusters: Vec<String>,
    /// When it ends by itself.
    pub expires: Option<Timestamp>,
}

/// A key, with the text that is shown once.
#[derive(Debug)]
pub struct Secret {
    /// What is kept of it.
    pub key: Credential,
    /// Its text.
    pub text: String,
}

/// All accounts and keys. Cloning gives another handle to them.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: Arc<Limits>,
}

impl Registry {
    /// Those of a store.
    pub fn new(store: Arc<dyn Store>, rates: Rates) -> Self {
        Self { store, limits: Arc::new(Limits::new(rates)) }
    }

    /// Adds an account.
    pub async fn create_account(&self, account: Account) -> Result<Account, Error> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=LONGEST_ID).contains(&account.id.len()) || !account.id.bytes().all(fits) {
            return Err(Error::BadId);
        }
        match self.store.add_account(account.clone()).await? {
            true => Ok(account),
            false => Err(Error::Taken(account.id)),
        }
    }

    /// Changes an account.
    pub async fn update_account(
        &self,
        id: &str,
        change: impl FnOnce(&mut Account) + Send,
    ) -> Result<Account, Error> {
        let none = || Error::NoAccount(id.to_owned());
        let mut account = self.store.account(id).await?.ok_or_else(none)?;
        change(&mut account);
        if self.store.change_account(account.clone()).await? { Ok(account) } else { Err(none()) }
    }

    /// All accounts.
    pub async fn accounts(&self) -> Result<Vec<Account>, Error> {
        Ok(self.store.accounts().await?)
    }

    /// Makes a key.
    pub async fn create_key(&self, new: NewKey) -> Result<Secret, Error> {
        let now = now();
        let (scopes, expires) = match new.kind {
            CredentialKind::Key if new.scopes.is_empty() => (vec![Scope::Ask.to_string()], new.expires),
            CredentialKind::Key => (new.scopes, new.expires),
            CredentialKind::JoinToken if new.clusters.len() != 1 => return Err(Error::OneCluster),
            CredentialKind::JoinToken => (Vec::new(), new.expires.or_else(|| Some(later(now, JOIN_LIFE)))),
            CredentialKind::Cluster => return Err(Error::NotMade),
        };
        scopes.iter().try_for_each(|name| name.parse::<Scope>().map(drop))?;
        if expires.is_some_and(|end| end <= now) {
            return Err(Error::Over);
        }
        let secret = issue(Credential {
            id: String::new(),
            account: new.account,
            kind: new.kind,
            digest: [0; 32],
            name: new.name,
            scopes,
            clusters: new.clusters,
            created: now,
            expires,
            revoked: None,
            used: None,
        })?;
        match self.store.add_credential(secret.key.clone()).await? {
            true => Ok(secret),
            false => Err(Error::NoAccount(secret.key.account)),
        }
    }

    /// The keys of an account, also those that count no more.
    pub async fn keys(&self, account: &str) -> Result<Vec<Credential>, Error> {
        if self.store.account(account).await?.is_none() {
            return Err(Error::NoAccount(account.to_owned()));
        }
        Ok(self.store.credentials(account).await?)
    }

    /// Ends a key at once; of a cluster, also those that it has taken the place of.
    pub async fn revoke(&self, id: &str) -> Result<(), Error> {
        let now = now();
        match self.store.end_credential(id, now, now).await? {
            true => self.revoke_replaced(id, now).await,
            false => Err(Error::NoKey(id.to_owned())),
        }
    }

    /// Makes a key that takes the place of another one, which counts a little longer.
    pub async fn rotate(&self, id: &str, overlap: Duration) -> Result<Secret, Error> {
        let none = || Error::NoKey(id.to_owned());
        let old = self.store.credential(id).await?.ok_or_else(none)?;
        match old.kind {
            CredentialKind::Key => self.succeed(old, overlap).await?.ok_or_else(none),
            CredentialKind::JoinToken | CredentialKind::Cluster => Err(none()),
        }
    }

    /// The successor of a key; `None` if that does not count any more.
    pub(crate) async fn succeed(&self, old: Credential, overlap: Duration) -> Result<Option<Secret>, Error> {
        let now = now();
        let id = old.id.clone();
        let secret = issue(Credential { created: now, revoked: None, used: None, ..old })?;
        let done = self.store.replace_credential(&id, now, later(now, overlap), secret.key.clone()).await?;
        Ok(done.then_some(secret))
    }
}

/// A credential with an id, a digest and a text of its own.
pub(crate) fn issue(like: Credential) -> Result<Secret, NoRandomness> {
    let (text, token) = secret::generate(like.kind)?;
    let key = Credential { id: token.id().to_owned(), digest: token.digest(), ..like };
    Ok(Secret { key, text })
}

pub(crate) fn now() -> Timestamp {
    Timestamp(clock::unix_nanos())
}

pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp(time.0.saturating_add(i64::try_from(by.as_nanos()).unwrap_or(i64::MAX)))
}
