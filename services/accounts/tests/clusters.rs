//! Clusters join with a token that counts once, and have keys that let them do nothing else.

#![cfg(test)]

use std::sync::Arc;

use accounts::{Cluster, Denied, Error, NewKey, Rates, Registry};
use runtime::token::Token;
use store::{CredentialKind, Memory, Retention};

fn registry() -> Registry {
    Registry::new(Arc::new(Memory::new(Retention::default())), Rates::default())
}

fn new(kind: CredentialKind, clusters: &[&str]) -> NewKey {
    NewKey {
        account: "default".to_owned(),
        kind,
        name: String::new(),
        scopes: Vec::new(),
        clusters: clusters.iter().map(|name| (*name).to_owned()).collect(),
        expires: None,
    }
}

/// Whether a text is taken as the key of a client.
async fn asks(registry: &Registry, text: &str) -> bool {
    let token = Token::read(text).unwrap();
    registry.admit(token.id(), &token.digest()).await.is_ok()
}

#[tokio::test]
async fn a_token_lets_one_cluster_join_once() {
    let registry = registry();
    let token = registry.create_key(new(CredentialKind::JoinToken, &["lab"])).await.unwrap();
    assert!(token.key.expires.is_some(), "it does not lie around");
    let (one, other) = tokio::join!(registry.join(&token.text), registry.join(&token.text));
    let (joined, refused) = if one.is_ok() { (one, other) } else { (other, one) };
    assert!(matches!(refused, Err(Denied::Unknown)), "{refused:?}");
    let (cluster, secret) = joined.unwrap();
    assert_eq!((cluster.account.as_str(), cluster.name.as_str()), ("default", "lab"));
    assert_eq!(registry.cluster(&secret.text).await.unwrap(), cluster);
    for text in [&token.text, &secret.text] {
        assert!(!asks(&registry, text).await, "neither asks questions");
    }
    assert!(matches!(registry.cluster(&token.text).await, Err(Denied::Unknown)));
}

#[tokio::test]
async fn a_key_of_a_cluster_is_renewed_and_its_old_one_ends() {
    let registry = registry();
    let token = registry.create_key(new(CredentialKind::JoinToken, &["lab"])).await.unwrap();
    let (_, first) = registry.join(&token.text).await.unwrap();
    let (Cluster { name, key, .. }, second) = registry.renew(&first.text).await.unwrap();
    assert_eq!((name.as_str(), key.as_str()), ("lab", second.key.id.as_str()));
    assert!(registry.cluster(&first.text).await.is_ok(), "the answer may have been lost");
    registry.revoke(&first.key.id).await.unwrap();
    assert!(matches!(registry.cluster(&first.text).await, Err(Denied::Unknown)));
    assert!(registry.cluster(&second.text).await.is_ok());

    let (_, third) = registry.renew(&second.text).await.unwrap();
    let token = registry.create_key(new(CredentialKind::JoinToken, &["lab"])).await.unwrap();
    let (_, other) = registry.join(&token.text).await.unwrap();
    registry.revoke(&third.key.id).await.unwrap();
    assert!(
        matches!(registry.cluster(&second.text).await, Err(Denied::Unknown)),
        "it ends with its successor"
    );
    assert!(
        registry.cluster(&other.text).await.is_ok(),
        "an executor of the cluster that has joined by itself"
    );
}

#[tokio::test]
async fn clients_cannot_pass_as_clusters_and_clusters_are_not_made() {
    let registry = registry();
    let client = registry.create_key(new(CredentialKind::Key, &["lab"])).await.unwrap();
    assert!(asks(&registry, &client.text).await);
    assert!(matches!(registry.join(&client.text).await, Err(Denied::Unknown)));
    assert!(matches!(registry.cluster(&client.text).await, Err(Denied::Unknown)));
    let made = registry.create_key(new(CredentialKind::Cluster, &["lab"])).await;
    assert!(matches!(made, Err(Error::NotMade)), "{made:?}");
    for clusters in [&[] as &[&str], &["a", "b"]] {
        let token = registry.create_key(new(CredentialKind::JoinToken, clusters)).await;
        assert!(matches!(token, Err(Error::OneCluster)), "{token:?}");
    }
}
