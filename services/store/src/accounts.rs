//! Accounts, and the credentials that prove that somebody may act for one.

use async_trait::async_trait;
use domain::Timestamp;

use crate::{Budget, Error, Spent, error::check_name};

/// The account that every store has.
pub const DEFAULT_ACCOUNT: &str = "default";

/// Accounts and their credentials. Secrets are never in here, only what they can be recognised by.
#[async_trait]
pub trait Accounts: Send + Sync + 'static {
    /// Adds an account. False if there is one with its id.
    async fn add_account(&self, account: Account) -> Result<bool, Error>;

    /// Replaces what is known of an account, but for what it has spent. False if there is none with its id.
    async fn change_account(&self, account: Account) -> Result<bool, Error>;

    /// An account.
    async fn account(&self, id: &str) -> Result<Option<Account>, Error>;

    /// All accounts, in the order of their ids.
    async fn accounts(&self) -> Result<Vec<Account>, Error>;

    /// Counts what an account has spent beside its logs. It need not exist.
    async fn spend(&self, account: &str, spent: Spent) -> Result<(), Error>;

    /// Adds a credential. False if its account does not exist.
    async fn add_credential(&self, credential: Credential) -> Result<bool, Error>;

    /// A credential, whether it counts or not.
    async fn credential(&self, id: &str) -> Result<Option<Credential>, Error>;

    /// The credentials of an account, in the order of their creation.
    async fn credentials(&self, account: &str) -> Result<Vec<Credential>, Error>;

    /// Lets a credential that counts at `now` count only until `end`. False if it does not count.
    async fn end_credential(&self, id: &str, now: Timestamp, end: Timestamp) -> Result<bool, Error>;

    /// [`Self::end_credential`] for the old one and [`Self::add_credential`] for its successor, both or none: of
    /// many who try it at once with `end == now`, one succeeds.
    async fn replace_credential(
        &self,
        old: &str,
        now: Timestamp,
        end: Timestamp,
        new: Credential,
    ) -> Result<bool, Error>;

    /// Takes note that a credential was used.
    async fn credential_used(&self, id: &str, at: Timestamp) -> Result<(), Error>;
}

/// Whom everything belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Its id. It is no secret.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The model that answers where a question names none. Empty for the server's default.
    pub default_model: String,
    /// When it was created.
    pub created: Timestamp,
    /// When it was switched off: none of its credentials counts.
    pub disabled: Option<Timestamp>,
    /// What it may spend in a day.
    pub budget: Budget,
    /// What it has spent today.
    pub spent: Spent,
}

/// Something that proves that its bearer may act for an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Its id. It is no secret.
    pub id: String,
    /// The account.
    pub account: String,
    /// What it is for.
    pub kind: CredentialKind,
    /// SHA-256 of the secret.
    pub digest: [u8; 32],
    /// What people call it.
    pub name: String,
    /// What may be done with it; the store does not look into it.
    pub scopes: Vec<String>,
    /// The only clusters that may be reached with it. All of the account's if there are none.
    pub clusters: Vec<String>,
    /// When it was created.
    pub created: Timestamp,
    /// When it ends by itself.
    pub expires: Option<Timestamp>,
    /// When it was, or will be, ended by somebody.
    pub revoked: Option<Timestamp>,
    /// When it was used last, roughly.
    pub used: Option<Timestamp>,
}

/// What a credential is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// People and programs that ask.
    Key,
    /// Lets one cluster join, once.
    JoinToken,
    /// A cluster that has joined.
    Cluster,
}

impl Credential {
    /// Whether it counts at a time.
    pub fn counts(&self, now: Timestamp) -> bool {
        [self.expires, self.revoked].into_iter().flatten().all(|end| end > now)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_name("the id of a credential", &self.id)?;
        check_label("the name of a credential", &self.name)?;
        self.scopes.iter().try_for_each(|scope| check_name("a scope", scope))?;
        self.clusters.iter().try_for_each(|cluster| check_name("the name of a cluster", cluster))
    }
}

impl Account {
    /// The account that every store has.
    pub(crate) fn default_one() -> Self {
        Self {
            id: DEFAULT_ACCOUNT.to_owned(),
            name: String::new(),
            default_model: String::new(),
            created: Timestamp(0),
            disabled: None,
            budget: Budget::default(),
            spent: Spent::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_name("the id of an account", &self.id)?;
        check_label("the name of an account", &self.name)?;
        check_label("the default model of an account", &self.default_model)
    }
}

/// Checks a text that may be empty.
fn check_label(what: &'static str, text: &str) -> Result<(), Error> {
    if text.is_empty() { Ok(()) } else { check_name(what, text) }
}

/// Names, none of which has a control character, as one text.
pub(crate) fn joined(names: &[String]) -> String {
    names.join("\n")
}

/// What [`joined`] joined.
pub(crate) fn split(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
