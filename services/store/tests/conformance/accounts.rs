//! Accounts and their credentials.

use domain::Timestamp;
use store::{Account, Batch, Budget, Credential, CredentialKind, Error, Spent};

use crate::stores::{Bench, delta, events, promises};

promises! {
    there_is_a_default_account;
    accounts_are_added_once_and_changed;
    what_is_spent_is_counted_once_and_for_its_account;
    credentials_are_what_was_added;
    a_credential_ends_at_its_time_and_never_later;
    one_of_many_replaces_a_credential;
    a_credential_belongs_to_an_account_that_exists;
}

fn account(id: &str) -> Account {
    Account {
        id: id.into(),
        name: format!("team {id}"),
        default_model: String::new(),
        created: Timestamp(5),
        disabled: None,
        budget: Budget::default(),
        spent: Spent::default(),
    }
}

fn credential(id: &str, account: &str) -> Credential {
    Credential {
        id: id.into(),
        account: account.into(),
        kind: CredentialKind::Key,
        digest: [7; 32],
        name: "laptop".into(),
        scopes: vec!["a:read".into(), "b:write".into()],
        clusters: vec![],
        created: Timestamp(1_700_000_000_123_456_789),
        expires: None,
        revoked: None,
        used: None,
    }
}

async fn there_is_a_default_account(bench: Bench) {
    let accounts = bench.store.accounts().await.unwrap();
    assert_eq!(accounts.iter().map(|account| account.id.as_str()).collect::<Vec<_>>(), ["default"]);
    assert!(bench.store.account("default").await.unwrap().unwrap().disabled.is_none());
    assert_eq!(bench.store.account("acme").await.unwrap(), None);
}

async fn accounts_are_added_once_and_changed(bench: Bench) {
    assert!(bench.store.add_account(account("acme")).await.unwrap());
    let other = Account { name: "other".into(), ..account("acme") };
    assert!(!bench.store.add_account(other).await.unwrap());
    assert_eq!(bench.store.account("acme").await.unwrap(), Some(account("acme")));
    let budget = Budget { tokens: Some(u64::from(u32::MAX) + 1), cost_usd: Some(0.25) };
    let changed =
        Account { default_model: "opus".into(), disabled: Some(Timestamp(9)), budget, ..account("acme") };
    assert!(bench.store.change_account(changed.clone()).await.unwrap());
    assert_eq!(bench.store.account("acme").await.unwrap(), Some(changed));
    assert!(!bench.store.change_account(account("none")).await.unwrap());
    bench.store.add_account(account("B")).await.unwrap();
    let ids: Vec<_> = bench.store.accounts().await.unwrap().into_iter().map(|account| account.id).collect();
    assert_eq!(ids, ["B", "acme", "default"]);
    let bad = bench.store.add_account(account("a\nb")).await;
    assert_eq!(bad, Err(Error::BadName("the id of an account")));
}

/// What an account has spent today.
pub(crate) async fn spent(bench: &Bench, id: &str) -> Spent {
    bench.store.account(id).await.unwrap().unwrap().spent
}

/// Waits until a day is over that is about to end: what is counted would be gone.
pub(crate) async fn early_enough() {
    let left = store::until_tomorrow(Timestamp(nanos()));
    if left < std::time::Duration::from_secs(60) {
        tokio::time::sleep(left).await;
    }
}

fn nanos() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_nanos().try_into().unwrap()
}

async fn what_is_spent_is_counted_once_and_for_its_account(bench: Bench) {
    early_enough().await;
    bench.store.add_account(account("acme")).await.unwrap();
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    let cost = |tokens, cost_usd| Spent { tokens, cost_usd };
    let append = async |after: u64, spent: Spent| {
        let batch = Batch::new(after, events("r", after, vec![delta("x")]));
        bench.store.append(&lease, batch.costing(spent)).await
    };
    append(0, cost(100, 0.5)).await.unwrap();
    append(1, cost(0, 0.0)).await.unwrap();
    append(2, cost(20, 0.25)).await.unwrap();
    assert_eq!(spent(&bench, "acme").await, cost(120, 0.75));
    append(1, cost(7, 7.0)).await.unwrap_err();
    assert_eq!(spent(&bench, "acme").await, cost(120, 0.75), "what is not in the log was not spent");
    bench.store.spend("acme", cost(3, 0.0)).await.unwrap();
    bench.store.change_account(account("acme")).await.unwrap();
    let all = bench.store.accounts().await.unwrap();
    let all: Vec<_> = all.iter().map(|account| (account.id.as_str(), account.spent)).collect();
    assert_eq!(all, [("acme", cost(123, 0.75)), ("default", Spent::default())]);
    bench.store.delete(lease.log()).await.unwrap();
    assert_eq!(spent(&bench, "acme").await, cost(123, 0.75), "it stays spent when the run goes");
}

async fn credentials_are_what_was_added(bench: Bench) {
    bench.store.add_account(account("acme")).await.unwrap();
    let token = Credential {
        kind: CredentialKind::JoinToken,
        scopes: vec![],
        clusters: vec!["eu".into(), "us east".into()],
        expires: Some(Timestamp(99)),
        ..credential("k2", "acme")
    };
    for added in [credential("k1", "acme"), token.clone(), credential("k3", "default")] {
        assert!(bench.store.add_credential(added).await.unwrap());
    }
    let listed = bench.store.credentials("acme").await.unwrap();
    assert_eq!(listed, [credential("k1", "acme"), token]);
    bench.store.credential_used("k1", Timestamp(11)).await.unwrap();
    let used = Credential { used: Some(Timestamp(11)), ..credential("k1", "acme") };
    assert_eq!(bench.store.credential("k1").await.unwrap(), Some(used));
    assert_eq!(bench.store.credential("k").await.unwrap(), None);
    let bad = Credential { scopes: vec!["x\ny".into()], ..credential("k4", "acme") };
    assert_eq!(bench.store.add_credential(bad).await, Err(Error::BadName("a scope")));
}

async fn a_credential_ends_at_its_time_and_never_later(bench: Bench) {
    let brief = Credential { expires: Some(Timestamp(50)), ..credential("brief", "default") };
    bench.store.add_credential(brief).await.unwrap();
    bench.store.add_credential(credential("k", "default")).await.unwrap();
    let end = |id: &'static str, now, end| bench.store.end_credential(id, Timestamp(now), Timestamp(end));
    assert!(!end("brief", 50, 60).await.unwrap());
    assert!(!end("none", 1, 2).await.unwrap());
    assert!(end("k", 10, 30).await.unwrap());
    assert!(end("k", 20, 40).await.unwrap());
    let ended = bench.store.credential("k").await.unwrap().unwrap();
    assert_eq!(ended.revoked, Some(Timestamp(30)));
    assert!(ended.counts(Timestamp(29)) && !ended.counts(Timestamp(30)));
    assert!(!end("k", 30, 31).await.unwrap());
}

async fn one_of_many_replaces_a_credential(bench: Bench) {
    bench.store.add_credential(credential("token", "default")).await.unwrap();
    let now = Timestamp(10);
    let tries = (0..6).map(|number| {
        let new = credential(&format!("new{number}"), "default");
        bench.store.replace_credential("token", now, now, new)
    });
    let done = futures_util::future::try_join_all(tries).await.unwrap();
    assert_eq!(done.iter().filter(|done| **done).count(), 1);
    assert_eq!(bench.store.credentials("default").await.unwrap().len(), 2);
}

async fn a_credential_belongs_to_an_account_that_exists(bench: Bench) {
    assert!(!bench.store.add_credential(credential("k", "none")).await.unwrap());
    bench.store.add_credential(credential("old", "default")).await.unwrap();
    let now = Timestamp(10);
    assert!(!bench.store.replace_credential("old", now, now, credential("k", "none")).await.unwrap());
    assert!(bench.store.credential("old").await.unwrap().unwrap().counts(now));
    assert_eq!(bench.store.credential("k").await.unwrap(), None);
}
