//! Leases, fencing, logs that nobody owns.

use std::time::Duration;

use store::{Batch, Error, OwnerId};

use crate::stores::{Bench, LIFE, began, delta, ended, events, log, promises};

promises! {
    a_living_owner_keeps_its_log;
    a_log_of_a_dead_owner_is_taken_over_and_the_owner_is_fenced;
    a_released_log_is_free;
    an_owner_fences_itself;
    logs_that_need_an_owner_are_found;
    of_two_that_claim_one_wins;
    what_is_said_lasts_as_long_as_it_is_said_for;
}

async fn what_is_said_lasts_as_long_as_it_is_said_for(bench: Bench) {
    let (one, other) = (OwnerId::new("one"), OwnerId::new("other"));
    let said = async || bench.store.notices().await.unwrap();
    assert_eq!(said().await, []);
    bench.store.notify(&other, b"first".to_vec(), LIFE).await.unwrap();
    bench.store.notify(&one, b"here".to_vec(), LIFE).await.unwrap();
    bench.store.notify(&other, b"second".to_vec(), LIFE).await.unwrap();
    assert_eq!(said().await, [(one.clone(), b"here".to_vec()), (other.clone(), b"second".to_vec())]);
    bench.store.notify(&one, Vec::new(), Duration::ZERO).await.unwrap();
    assert_eq!(said().await, [(other, b"second".to_vec())]);
}

async fn a_living_owner_keeps_its_log(bench: Bench) {
    let (first, second) = (bench.owner("a").await, bench.owner("b").await);
    let lease = bench.run("r", &first).await;
    assert_eq!(bench.store.claim(&log("r"), &second).await.unwrap(), None);
    bench.append(&lease, 0, vec![began()]).await.unwrap();
    assert!(bench.store.abandoned(10).await.unwrap().is_empty());
    let unknown = bench.store.claim(&log("none"), &second).await.unwrap_err();
    assert_eq!(unknown, Error::UnknownLog(log("none")));
}

async fn a_log_of_a_dead_owner_is_taken_over_and_the_owner_is_fenced(bench: Bench) {
    let (first, second) = (bench.owner("a").await, bench.owner("b").await);
    let old = bench.run("r", &first).await;
    bench.append(&old, 0, vec![began()]).await.unwrap();
    bench.store.heartbeat(&first, Duration::ZERO).await.unwrap();
    // Nobody has taken over yet, so that nothing is lost if it goes on.
    bench.append(&old, 1, vec![delta("late")]).await.unwrap();
    let new = bench.store.claim(&log("r"), &second).await.unwrap().unwrap();
    assert!(new.epoch() > old.epoch());
    // At the right position and at a wrong one: a fenced owner is told so, whatever it wants.
    for after in [2, 0] {
        let fenced = bench.append(&old, after, vec![delta("stale")]).await.unwrap_err();
        assert_eq!(fenced, Error::Fenced(log("r")));
    }
    bench.append(&new, 2, vec![delta("fresh")]).await.unwrap();
    bench.store.release(old).await.unwrap();
    bench.append(&new, 3, vec![ended()]).await.unwrap();
    assert_eq!(bench.positions(&log("r")).await, [1, 2, 3, 4]);
}

async fn a_released_log_is_free(bench: Bench) {
    let (first, second) = (bench.owner("a").await, bench.owner("b").await);
    let old = bench.run("r", &first).await;
    bench.append(&old, 0, vec![began()]).await.unwrap();
    bench.store.release(old.clone()).await.unwrap();
    assert_eq!(bench.append(&old, 1, vec![delta("x")]).await, Err(Error::Fenced(log("r"))));
    assert_eq!(bench.store.abandoned(10).await.unwrap(), [log("r")]);
    let new = bench.store.claim(&log("r"), &second).await.unwrap().unwrap();
    bench.append(&new, 1, vec![delta("x")]).await.unwrap();
}

async fn an_owner_fences_itself(bench: Bench) {
    let owner = bench.owner("a").await;
    let old = bench.run("r", &owner).await;
    let new = bench.store.claim(&log("r"), &owner).await.unwrap().unwrap();
    assert_eq!(bench.append(&old, 0, vec![delta("x")]).await, Err(Error::Fenced(log("r"))));
    bench.append(&new, 0, vec![delta("x")]).await.unwrap();
}

async fn logs_that_need_an_owner_are_found(bench: Bench) {
    // An owner whose heart never beat.
    let gone = OwnerId::new("gone");
    let running = bench.run("running", &gone).await;
    bench.append(&running, 0, vec![began()]).await.unwrap();
    let over = bench.run("over", &gone).await;
    bench.append(&over, 0, vec![began(), ended()]).await.unwrap();
    bench.run("empty", &gone).await;
    let asked = bench.run("asked", &gone).await;
    bench.store.post(&log("asked"), "hello", vec![]).await.unwrap();
    assert_eq!(bench.store.abandoned(10).await.unwrap(), [log("running"), log("asked")]);
    assert_eq!(bench.store.abandoned(1).await.unwrap(), [log("running")]);

    let taken = Batch::new(0, events("asked", 0, vec![began(), ended()])).taking(1);
    bench.store.append(&asked, taken).await.unwrap();
    assert_eq!(bench.store.abandoned(10).await.unwrap(), [log("running")]);
    bench.store.heartbeat(&gone, LIFE).await.unwrap();
    assert!(bench.store.abandoned(10).await.unwrap().is_empty());
}

async fn of_two_that_claim_one_wins(bench: Bench) {
    let (first, second) = (bench.owner("a").await, bench.owner("b").await);
    bench.run("r", &OwnerId::new("gone")).await;
    let id = log("r");
    let (one, other) = tokio::join!(bench.store.claim(&id, &first), bench.store.claim(&id, &second));
    assert_eq!(one.unwrap().is_some(), other.unwrap().is_none());
}
