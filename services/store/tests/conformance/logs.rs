//! Creation, lists, retention, deletion.

use std::{num::NonZeroUsize, time::Duration};

use domain::Outcome;
use store::{Creation, Error, Kind, Meta, NewLog, Query, Retention, State};

use crate::stores::{ALL, Bench, began, delta, ended, keyed, log, new_run, promises};

promises! {
    an_id_is_used_once;
    a_repeated_request_gets_the_log_of_the_first;
    of_many_equal_requests_one_creates;
    lists_are_newest_first_and_of_one_account;
    what_is_known_of_a_log_follows_its_events;
    names_that_not_every_store_can_hold_are_refused;
    a_deleted_log_is_gone_with_everything;
    logs_at_rest_go_oldest_first_and_running_ones_never;
}

fn query(kind: Kind, before: Option<u64>, limit: usize) -> Query {
    Query { account: "acme".into(), kind, before, limit: NonZeroUsize::new(limit).unwrap() }
}

async fn an_id_is_used_once(bench: Bench) {
    let owner = bench.owner("a").await;
    bench.run("r", &owner).await;
    let again = bench.store.create(new_run("r", &owner, vec![began()])).await.unwrap_err();
    assert_eq!(again, Error::Exists(log("r")));
    assert!(bench.positions(&log("r")).await.is_empty());
}

async fn a_repeated_request_gets_the_log_of_the_first(bench: Bench) {
    let owner = bench.owner("a").await;
    let first = bench.store.create(keyed("r1", &owner, "k", 1)).await.unwrap();
    assert!(matches!(first, Creation::New(_)));
    let create = async |new| bench.store.create(new).await.unwrap();
    assert_eq!(create(keyed("r2", &owner, "k", 1)).await, Creation::Existing(log("r1")));
    assert_eq!(create(keyed("r3", &owner, "k", 2)).await, Creation::Mismatch(log("r1")));
    assert!(matches!(create(keyed("r4", &owner, "other", 2)).await, Creation::New(_)));
    let created = async |key: &str, digest| {
        let asked = keyed("r", &owner, key, digest).idempotency.unwrap();
        bench.store.created(&asked).await
    };
    assert_eq!(created("k", 1).await, Ok(Some(log("r1"))));
    assert_eq!((created("k", 2).await, created("new", 1).await), (Ok(None), Ok(None)));
    assert!(matches!(created("a\0b", 1).await, Err(Error::BadName(_))));
    let mut elsewhere = keyed("r5", &owner, "k", 2);
    elsewhere.idempotency.as_mut().unwrap().scope = "other".into();
    assert!(matches!(create(elsewhere).await, Creation::New(_)));
    assert_eq!(bench.store.entry(&log("r2")).await, Err(Error::UnknownLog(log("r2"))));
    assert_eq!(bench.positions(&log("r1")).await, [1]);
}

async fn of_many_equal_requests_one_creates(bench: Bench) {
    let owner = bench.owner("a").await;
    let all = (0..16).map(|number| bench.store.create(keyed(&format!("r{number}"), &owner, "k", 1)));
    let all = futures_util::future::try_join_all(all).await.unwrap();
    let new: Vec<_> =
        all.iter().filter_map(|one| if let Creation::New(l) = one { Some(l) } else { None }).collect();
    let [lease] = new[..] else { panic!("{all:?}") };
    let same = all.iter().filter(|one| **one == Creation::Existing(lease.log().clone()));
    assert_eq!(same.count(), 15);
}

async fn lists_are_newest_first_and_of_one_account(bench: Bench) {
    let owner = bench.owner("a").await;
    for number in 0..5 {
        bench.run(&format!("r{number}"), &owner).await;
    }
    let mut other = new_run("theirs", &owner, vec![]);
    other.meta.account = "other".into();
    bench.store.create(other).await.unwrap();
    let session = new_run("session", &owner, vec![]);
    let meta = Meta { kind: Kind::Session, ..session.meta.clone() };
    bench.store.create(NewLog { meta, ..session }).await.unwrap();

    let ids = |page: &[store::Entry]| page.iter().map(|entry| entry.log.to_string()).collect::<Vec<_>>();
    let page = bench.store.list(query(Kind::Run, None, 2)).await.unwrap();
    assert_eq!(ids(&page), ["r4", "r3"]);
    let page = bench.store.list(query(Kind::Run, Some(page[1].number), 9)).await.unwrap();
    assert_eq!(ids(&page), ["r2", "r1", "r0"]);
    assert_eq!(ids(&bench.store.list(query(Kind::Session, None, 9)).await.unwrap()), ["session"]);
}

async fn what_is_known_of_a_log_follows_its_events(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    let id = log("r");
    let entry = bench.store.entry(&id).await.unwrap();
    assert_eq!((entry.state, entry.position), (State::Empty, 0));
    assert_eq!(entry.meta, new_run("r", &owner, vec![]).meta);
    assert!(entry.created.0 > 0 && entry.updated >= entry.created);
    bench.append(&lease, 0, vec![began(), delta("x")]).await.unwrap();
    bench.append(&lease, 2, vec![delta("y")]).await.unwrap();
    let entry = bench.store.entry(&id).await.unwrap();
    assert_eq!((entry.state, entry.position), (State::Running, 3));
    bench.append(&lease, 3, vec![ended()]).await.unwrap();
    bench.store.describe(&id, "new \u{1F980}".into(), vec![0, 1, 2]).await.unwrap();
    let known = bench.store.list(query(Kind::Run, None, 1)).await.unwrap().remove(0);
    assert_eq!(known, bench.store.entry(&id).await.unwrap());
    assert_eq!((known.state, known.position), (State::Ended(Outcome::Finished), 4));
    assert_eq!((known.meta.title.as_str(), &known.meta.details[..]), ("new \u{1F980}", &[0, 1, 2][..]));
    let unknown = bench.store.describe(&log("none"), String::new(), vec![]).await;
    assert_eq!(unknown, Err(Error::UnknownLog(log("none"))));
    let (read, new) = (vec![0, 1, 2], vec![3]);
    assert!(bench.store.amend(&id, read.clone(), "amended".into(), new.clone()).await.unwrap());
    assert!(!bench.store.amend(&id, read, "too late".into(), vec![4]).await.unwrap());
    let meta = bench.store.entry(&id).await.unwrap().meta;
    assert_eq!((meta.title.as_str(), meta.details), ("amended", new));
    let unknown = bench.store.amend(&log("none"), vec![], String::new(), vec![]).await;
    assert_eq!(unknown, Err(Error::UnknownLog(log("none"))));
    // Not every database can hold this character in a text.
    bench.store.describe(&id, "a\0b".into(), vec![]).await.unwrap();
    assert!(bench.store.entry(&id).await.unwrap().meta.title.starts_with('a'));
}

async fn names_that_not_every_store_can_hold_are_refused(bench: Bench) {
    let owner = bench.owner("a").await;
    let refused = |new: NewLog| async { matches!(bench.store.create(new).await, Err(Error::BadName(_))) };
    assert!(refused(new_run("", &owner, vec![])).await);
    assert!(refused(new_run("a\0b", &owner, vec![])).await);
    assert!(refused(keyed("r", &owner, &"k".repeat(513), 1)).await);
    bench.run("r", &owner).await;
    assert!(matches!(bench.store.post(&log("r"), "a\nb", vec![]).await, Err(Error::BadName(_))));
}

async fn a_deleted_log_is_gone_with_everything(bench: Bench) {
    let owner = bench.owner("a").await;
    let Creation::New(lease) = bench.store.create(keyed("r", &owner, "k", 1)).await.unwrap() else {
        panic!()
    };
    let id = log("r");
    bench.store.post(&id, "p", vec![1]).await.unwrap();
    let blob = bench.store.put_blob(&id, vec![7; 1000]).await.unwrap();
    let mut head = bench.store.head(&id).await.unwrap();
    assert!(bench.store.delete(&id).await.unwrap());
    assert!(!bench.store.delete(&id).await.unwrap());
    // Who waits is told.
    assert!(head.wait_for(|head| head.position > 1).await.is_err());
    let unknown = Error::UnknownLog(id.clone());
    assert_eq!(bench.append(&lease, 1, vec![delta("x")]).await.unwrap_err(), unknown);
    assert_eq!(bench.store.read(&id, 0, ALL).await.unwrap_err(), unknown);
    assert_eq!(bench.store.blob(&id, blob).await.unwrap_err(), unknown);
    assert_eq!(bench.store.posted(&id, 0).await.unwrap_err(), unknown);
    // Its key and its id are free, and nothing of the old log shows in a new one.
    assert!(matches!(bench.store.create(keyed("r", &owner, "k", 2)).await.unwrap(), Creation::New(_)));
    assert_eq!(bench.positions(&id).await, [1]);
    assert!(bench.store.posted(&id, 0).await.unwrap().is_empty());
    assert_eq!(bench.store.blob(&id, blob).await.unwrap(), None);
}

async fn logs_at_rest_go_oldest_first_and_running_ones_never(bench: Bench) {
    let owner = bench.owner("a").await;
    let running = bench.run("running", &owner).await;
    bench.append(&running, 0, vec![began()]).await.unwrap();
    bench.run("asked", &owner).await;
    bench.store.post(&log("asked"), "k", vec![]).await.unwrap();
    for number in 0..4 {
        let lease = bench.run(&number.to_string(), &owner).await;
        bench.append(&lease, 0, vec![began(), ended()]).await.unwrap();
    }
    // An account's agents are no history.
    let mut agent = new_run("agent", &owner, vec![began(), ended()]);
    agent.meta.kind = Kind::Agent;
    bench.store.create(agent).await.unwrap();
    let blob = bench.store.put_blob(&log("0"), vec![7; 1000]).await.unwrap();
    let kept = async || {
        let entries = bench.store.list(query(Kind::Run, None, 99)).await.unwrap();
        entries.iter().map(|entry| entry.log.to_string()).collect::<Vec<_>>()
    };
    let sweep = async |keep| bench.store.sweep(keep).await.unwrap();
    let all = Retention::default();
    assert_eq!(sweep(all).await, 0);
    assert_eq!(sweep(Retention { age: Some(Duration::from_secs(3600)), ..all }).await, 0);
    assert_eq!(sweep(Retention { logs: Some(3), ..all }).await, 1);
    assert_eq!(kept().await, ["3", "2", "1", "asked", "running"]);
    // What it had besides is gone, too.
    bench.run("0", &owner).await;
    assert_eq!(bench.store.blob(&log("0"), blob).await.unwrap(), None);
    assert!(bench.store.delete(&log("0")).await.unwrap());
    // The newest is kept, however large it is.
    assert_eq!(sweep(Retention { bytes: Some(1), ..all }).await, 2);
    assert_eq!(kept().await, ["3", "asked", "running"]);
    assert_eq!(sweep(Retention { age: Some(Duration::ZERO), ..all }).await, 1);
    assert_eq!(kept().await, ["asked", "running"]);
    assert_eq!(bench.store.list(query(Kind::Agent, None, 99)).await.unwrap().len(), 1);
}
