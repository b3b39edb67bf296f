//! The inbox, blobs.

use store::{Batch, BlobId, Error, Post};

use crate::stores::{Bench, began, events, log, promises};

promises! {
    the_first_entry_of_a_key_wins;
    entries_are_taken_with_the_events_that_they_became;
    whoever_waits_for_an_inbox_is_woken;
    blobs_are_found_by_their_content;
}

async fn the_first_entry_of_a_key_wins(bench: Bench) {
    let owner = bench.owner("a").await;
    bench.run("r", &owner).await;
    let id = log("r");
    let posts = (0..8u8).map(|number| bench.store.post(&id, "answer", vec![number]));
    let posts = futures_util::future::try_join_all(posts).await.unwrap();
    let first: Vec<_> = posts.iter().enumerate().filter(|(_, post)| **post == Post::First).collect();
    let [(winner, _)] = first[..] else { panic!("{posts:?}") };
    let payload = vec![u8::try_from(winner).unwrap()];
    assert_eq!(posts.iter().filter(|post| **post == Post::Earlier(payload.clone())).count(), 7);
    assert_eq!(bench.store.post(&id, "other", vec![]).await.unwrap(), Post::First);
    let posted = bench.store.posted(&id, 0).await.unwrap();
    let seen: Vec<_> = posted.iter().map(|posted| (posted.entry, posted.key.as_str())).collect();
    assert_eq!(seen, [(1, "answer"), (2, "other")]);
    assert_eq!(posted[0].payload, payload);
    assert_eq!(bench.store.posted(&id, 1).await.unwrap(), posted[1..]);
    let unknown = bench.store.post(&log("none"), "k", vec![]).await;
    assert_eq!(unknown, Err(Error::UnknownLog(log("none"))));
}

async fn entries_are_taken_with_the_events_that_they_became(bench: Bench) {
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    let id = log("r");
    for key in ["a", "b", "c"] {
        bench.store.post(&id, key, vec![]).await.unwrap();
    }
    let batch = || Batch::new(0, events("r", 0, vec![began()])).taking(2);
    let wrong = Batch { expected: 9, events: vec![], ..batch() };
    bench.store.append(&lease, wrong).await.unwrap_err();
    assert_eq!(bench.store.posted(&id, 0).await.unwrap().len(), 3);
    bench.store.append(&lease, batch()).await.unwrap();
    let left = bench.store.posted(&id, 0).await.unwrap();
    assert_eq!(left.iter().map(|posted| posted.key.as_str()).collect::<Vec<_>>(), ["c"]);
    // A taken entry is answered as before, and taking never goes back.
    assert_eq!(bench.store.post(&id, "a", vec![1]).await.unwrap(), Post::Earlier(vec![]));
    bench.store.append(&lease, Batch::new(1, vec![]).taking(1)).await.unwrap();
    assert_eq!(bench.store.posted(&id, 0).await.unwrap(), left);
}

async fn whoever_waits_for_an_inbox_is_woken(bench: Bench) {
    let owner = bench.owner("a").await;
    bench.run("r", &owner).await;
    let mut head = bench.store.head(&log("r")).await.unwrap();
    assert_eq!(head.borrow_and_update().inbox, 0);
    bench.store.post(&log("r"), "k", vec![]).await.unwrap();
    assert_eq!(head.wait_for(|head| head.inbox > 0).await.unwrap().inbox, 1);
}

async fn blobs_are_found_by_their_content(bench: Bench) {
    let owner = bench.owner("a").await;
    bench.run("r", &owner).await;
    bench.run("other", &owner).await;
    let id = log("r");
    let body = vec![42; 3 << 20];
    let blob = bench.store.put_blob(&id, body.clone()).await.unwrap();
    assert_eq!(blob, bench.store.put_blob(&id, body.clone()).await.unwrap());
    assert_eq!(blob, BlobId::of(&body));
    assert_eq!(bench.store.blob(&id, blob).await.unwrap(), Some(body));
    assert_eq!(bench.store.blob(&id, BlobId([0; 32])).await.unwrap(), None);
    assert_eq!(bench.store.blob(&log("other"), blob).await.unwrap(), None);
    let unknown = bench.store.put_blob(&log("none"), vec![]).await;
    assert_eq!(unknown, Err(Error::UnknownLog(log("none"))));
}
