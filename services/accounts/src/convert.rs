//! Accounts and keys between the store, the wire, and refusals as statuses.

use domain::Timestamp;
use store::{Account, Budget, Credential, CredentialKind, DEFAULT_ACCOUNT};
use tonic::{Code, Status};
use wire::account as pb;

use crate::{Denied, Error, entry::seconds};

pub(crate) fn account(account: Account) -> pb::Account {
    pb::Account {
        id: account.id,
        name: account.name,
        default_model: account.default_model,
        created_at: Some(account.created).filter(|at| at.0 > 0).map(wire::time),
        disabled_at: account.disabled.map(wire::time),
        daily_tokens: account.budget.tokens,
        daily_cost_usd: account.budget.cost_usd,
        tokens_today: account.spent.tokens,
        cost_usd_today: account.spent.cost_usd,
    }
}

/// What is said of a budget: what is unset stays, and zero takes a ceiling away.
pub(crate) fn budget(
    tokens: Option<u64>,
    cost_usd: Option<f64>,
) -> Result<impl FnOnce(Budget) -> Budget, Status> {
    if cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
        return Err(Status::invalid_argument("daily_cost_usd: it is no price"));
    }
    Ok(move |before: Budget| Budget {
        tokens: tokens.or(before.tokens).filter(|most| *most > 0),
        cost_usd: cost_usd.or(before.cost_usd).filter(|most| *most > 0.0),
    })
}

pub(crate) fn key(key: Credential) -> pb::Key {
    pb::Key {
        id: key.id,
        account: key.account,
        kind: match key.kind {
            CredentialKind::Key => pb::KeyKind::Client,
            CredentialKind::JoinToken => pb::KeyKind::Join,
            CredentialKind::Cluster => pb::KeyKind::Cluster,
        }
        .into(),
        name: key.name,
        scopes: key.scopes,
        clusters: key.clusters,
        created_at: Some(wire::time(key.created)),
        expires_at: key.expires.map(wire::time),
        revoked_at: key.revoked.map(wire::time),
        used_at: key.used.map(wire::time),
    }
}

pub(crate) fn kind(kind: pb::KeyKind) -> CredentialKind {
    match kind {
        pb::KeyKind::Unspecified | pb::KeyKind::Client => CredentialKind::Key,
        pb::KeyKind::Join => CredentialKind::JoinToken,
        pb::KeyKind::Cluster => CredentialKind::Cluster,
    }
}

/// A time of the wire; none that a clock could show is an error.
pub(crate) fn time(at: prost_types::Timestamp) -> Result<Timestamp, Status> {
    let nanos = at.seconds.checked_mul(1_000_000_000).and_then(|nanos| nanos.checked_add(at.nanos.into()));
    nanos.map(Timestamp).ok_or_else(|| Status::invalid_argument("a time is out of range"))
}

/// The account that is meant.
pub(crate) fn named(account: String) -> String {
    if account.is_empty() { DEFAULT_ACCOUNT.to_owned() } else { account }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::BadId | Error::Scope(_) | Error::OneCluster | Error::Over | Error::NotMade => {
                Code::InvalidArgument
            }
            Error::Store(store::Error::BadName(_)) => Code::InvalidArgument,
            Error::Taken(_) => Code::AlreadyExists,
            Error::NoAccount(_) | Error::NoKey(_) => Code::NotFound,
            Error::Randomness(_) => Code::Internal,
            Error::Store(_) => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Denied> for Status {
    fn from(denied: Denied) -> Self {
        let text = denied.to_string();
        match denied {
            Denied::Unknown => Self::unauthenticated(text),
            Denied::Scope(_) | Denied::NotForThis => Self::permission_denied(text),
            Denied::Unavailable(_) => Self::unavailable(text),
            Denied::TooMany(wait) => {
                let mut status = Self::resource_exhausted(text);
                status.metadata_mut().insert(wire::RETRY_AFTER, seconds(&wait).into());
                status
            }
        }
    }
}
