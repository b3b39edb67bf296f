//! Appending, reading, following.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, future::join_all};
use store::{Batch, Error, follow, tail};

use crate::stores::{ALL, Bench, began, delta, ended, events, log, promises};

promises! {
    what_was_appended_is_read;
    appends_at_the_wrong_position_are_refused;
    batches_with_gaps_are_refused;
    concurrent_appends_of_one_owner_leave_no_gap;
    logs_that_are_written_at_the_same_time_do_not_mix;
    readers_that_start_anywhere_at_any_time_see_each_event_once;
    a_tail_of_an_ended_run_ends;
    huge_events_are_kept_whole;
}

async fn what_was_appended_is_read(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    let written = events("r", 0, vec![began(), delta("Grüße \0 🦀"), ended()]);
    bench.store.append(&lease, Batch::new(0, written.clone())).await.unwrap();
    let read = bench.store.read(&log("r"), 0, ALL).await.unwrap();
    assert_eq!(read.iter().map(|event| (**event).clone()).collect::<Vec<_>>(), written);
    let page = bench.store.read(&log("r"), 1, 1.try_into().unwrap()).await.unwrap();
    assert_eq!(page.iter().map(|event| event.position).collect::<Vec<_>>(), [2]);
    let unknown = log("nobody");
    assert_eq!(bench.store.read(&unknown, 0, ALL).await.unwrap_err(), Error::UnknownLog(unknown.clone()));
    assert_eq!(bench.store.head(&unknown).await.unwrap_err(), Error::UnknownLog(unknown));
    assert!(bench.store.read(&log("r"), u64::MAX, ALL).await.unwrap().is_empty());
    bench.store.check().await.unwrap();
}

async fn appends_at_the_wrong_position_are_refused(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    bench.append(&lease, 0, vec![delta("1"), delta("2")]).await.unwrap();
    let conflict = bench.append(&lease, 1, vec![delta("2")]).await.unwrap_err();
    assert_eq!(conflict, Error::Conflict { log: log("r"), expected: 1, found: 2 });
    let conflict = bench.append(&lease, 3, vec![delta("4")]).await.unwrap_err();
    assert_eq!(conflict, Error::Conflict { log: log("r"), expected: 3, found: 2 });
    assert_eq!(bench.positions(&log("r")).await, [1, 2]);
}

async fn batches_with_gaps_are_refused(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    let mut batch = events("r", 0, vec![delta("1"), delta("2")]);
    batch[1].position = 3;
    let gap = bench.store.append(&lease, Batch::new(0, batch)).await.unwrap_err();
    assert_eq!(gap, Error::Gap { log: log("r"), expected: 2, found: 3 });
    assert!(bench.positions(&log("r")).await.is_empty());
}

async fn concurrent_appends_of_one_owner_leave_no_gap(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    // Each writer tries every position; one of them gets it.
    let writers = (0..4).map(|_| async {
        let mut won = 0;
        for after in 0..50 {
            match bench.append(&lease, after, vec![delta("x")]).await {
                Ok(()) => won += 1,
                Err(Error::Conflict { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        won
    });
    let won: u64 = join_all(writers).await.into_iter().sum();
    assert_eq!(bench.positions(&log("r")).await, (1..=won).collect::<Vec<_>>());
    assert_eq!(won, 50);
}

async fn logs_that_are_written_at_the_same_time_do_not_mix(bench: Bench) {
    let owner = bench.owner("a").await;
    let writers = (0..20).map(|number| {
        let (bench, owner) = (&bench, &owner);
        async move {
            let id = format!("r{number}");
            let lease = bench.run(&id, owner).await;
            for after in 0..20 {
                bench.append(&lease, after, vec![delta(&id)]).await.unwrap();
            }
        }
    });
    join_all(writers).await;
    for number in 0..20 {
        let id = format!("r{number}");
        let read = bench.store.read(&log(&id), 0, ALL).await.unwrap();
        assert_eq!(read.len(), 20);
        assert!(read.iter().all(|event| event.kind == delta(&id)));
    }
}

async fn readers_that_start_anywhere_at_any_time_see_each_event_once(bench: Bench) {
    const LAST: u64 = 300;
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    let run = domain::RunId::new("r");
    let writer = async {
        for after in 0..LAST - 1 {
            bench.append(&lease, after, vec![delta("x")]).await.unwrap();
        }
        bench.append(&lease, LAST - 1, vec![ended()]).await.unwrap();
    };
    let readers = [0, 1, 17, LAST - 1].map(|after| {
        let events = tail(Arc::clone(&bench.store), &run, after).map_ok(|event| event.position);
        async move { (after, events.try_collect::<Vec<_>>().await.unwrap()) }
    });
    let slow = async {
        let events = follow(Arc::clone(&bench.store), log("r"), 0).take(LAST as usize);
        let events = events.then(|event| async {
            tokio::task::yield_now().await;
            event.unwrap().position
        });
        (0, events.collect::<Vec<_>>().await)
    };
    let ((), read, slow) = tokio::join!(writer, join_all(readers), slow);
    for (after, positions) in read.into_iter().chain([slow]) {
        assert!(positions.iter().copied().eq(after + 1..=LAST), "a reader after {after} saw {positions:?}");
    }
}

async fn a_tail_of_an_ended_run_ends(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    bench.append(&lease, 0, vec![began(), ended()]).await.unwrap();
    for (after, events) in [(0, 2), (1, 1), (2, 0), (99, 0)] {
        let tail = tail(Arc::clone(&bench.store), &domain::RunId::new("r"), after);
        assert_eq!(tail.count().await, events, "after {after}");
    }
}

async fn huge_events_are_kept_whole(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    let huge = "x".repeat(16 << 20);
    bench.append(&lease, 0, vec![delta(huge.clone()), delta("small"), delta(huge.clone())]).await.unwrap();
    assert_eq!(bench.positions(&log("r")).await, [1, 2, 3]);
    let read = bench.store.read(&log("r"), 2, ALL).await.unwrap();
    assert_eq!(read[0].kind, delta(huge));
}
