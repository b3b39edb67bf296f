//! Clusters that join an account: a token that is used once becomes a key that is renewed.

use std::time::Duration;

use domain::Timestamp;
use store::{Credential, CredentialKind};

use crate::{
    Denied, Error, Registry, Secret,
    registry::{issue, later, now},
};

/// How long a cluster's key counts unless it is renewed.
const LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long it counts beside its successor, which may not have arrived.
const OVERLAP: Duration = Duration::from_secs(3600);

/// A cluster that has proved who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The account that it belongs to.
    pub account: String,
    /// Its name within the account.
    pub name: String,
    /// The id of its key.
    pub key: String,
}

impl Registry {
    /// Uses up a token to join, and makes the key of the cluster that it names.
    pub async fn join(&self, token: &str) -> Result<(Cluster, Secret), Denied> {
        let token = self.prove(token, CredentialKind::JoinToken).await?;
        let used_up = token.id.clone();
        let now = now();
        let secret = issue(Credential {
            kind: CredentialKind::Cluster,
            created: now,
            expires: Some(later(now, LIFE)),
            revoked: None,
            used: None,
            ..token
        });
        let secret = secret.map_err(|error| unavailable(&error))?;
        match self.store.replace_credential(&used_up, now, now, secret.key.clone()).await? {
            true => Ok((cluster(&secret.key)?, secret)),
            false => Err(Denied::Unknown),
        }
    }

    /// The cluster whose key this is.
    pub async fn cluster(&self, key: &str) -> Result<Cluster, Denied> {
        cluster(&self.prove(key, CredentialKind::Cluster).await?)
    }

    /// A fresh key for a cluster; its old one counts a little longer.
    pub async fn renew(&self, key: &str) -> Result<(Cluster, Secret), Denied> {
        let old = self.prove(key, CredentialKind::Cluster).await?;
        let old = Credential { expires: Some(later(now(), LIFE)), ..old };
        match self.succeed(old, OVERLAP).await {
            Ok(Some(secret)) => Ok((cluster(&secret.key)?, secret)),
            Ok(None) => Err(Denied::Unknown),
            Err(Error::Store(error)) => Err(error.into()),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Ends the keys of a cluster that only count a little longer beside their successor.
    pub(crate) async fn revoke_replaced(&self, successor: &str, now: Timestamp) -> Result<(), Error> {
        let key = self.store.credential(successor).await?;
        let Some(key) = key.filter(|key| key.kind == CredentialKind::Cluster) else { return Ok(()) };
        for other in self.store.credentials(&key.account).await? {
            let replaced = other.counts(now) && other.revoked.is_some();
            if replaced && other.kind == key.kind && other.clusters == key.clusters {
                self.store.end_credential(&other.id, now, now).await?;
            }
        }
        Ok(())
    }
}

fn cluster(key: &Credential) -> Result<Cluster, Denied> {
    let name = key.clusters.first().ok_or(Denied::Unknown)?;
    Ok(Cluster { account: key.account.clone(), name: name.clone(), key: key.id.clone() })
}

fn unavailable(error: &dyn std::fmt::Display) -> Denied {
    Denied::Unavailable(store::Error::Unavailable(error.to_string()))
}
