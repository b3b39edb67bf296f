//! What PostgreSQL promises beside the rest: several processes, and a server that dies.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::join_all};
use harness::postgres::Postgres;
use store::{Account, Batch, Budget, Error, Spent, follow};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    accounts, events, logs, ownership,
    pooler::Pooler,
    rest,
    stores::{Bench, began, delta, events as numbered, log, postgres},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_promise_is_kept() {
    let Some(server) = Postgres::start().await.unwrap() else { return };
    for (name, promise) in
        [accounts::all(), events::all(), logs::all(), ownership::all(), rest::all()].concat()
    {
        println!("{name}");
        promise(postgres(&server.database(name).await.unwrap()).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_logs() {
    let Some(server) = Postgres::start().await.unwrap() else { return };
    let url = server.database("shared").await.unwrap();
    // Both at once: one of them makes the tables.
    let (one, other) = tokio::join!(postgres(&url), postgres(&url));
    let owner = one.owner("one").await;
    let lease = one.run("r", &owner).await;
    let mut head = other.store.head(&log("r")).await.unwrap();
    let mut seen = Box::pin(follow(Arc::clone(&other.store), log("r"), 0));
    for after in 0..20 {
        one.append(&lease, after, vec![delta("x")]).await.unwrap();
        assert_eq!(seen.next().await.unwrap().unwrap().position, after + 1);
    }
    one.store.post(&log("r"), "k", vec![]).await.unwrap();
    assert_eq!(head.wait_for(|head| head.inbox == 1).await.unwrap().position, 20);

    let successor = other.owner("other").await;
    assert_eq!(other.store.claim(&log("r"), &successor).await.unwrap(), None);
    one.store.heartbeat(&owner, Duration::ZERO).await.unwrap();
    let taken = other.store.claim(&log("r"), &successor).await.unwrap().unwrap();
    assert_eq!(one.append(&lease, 20, vec![delta("late")]).await, Err(Error::Fenced(log("r"))));
    other.append(&taken, 20, vec![delta("mine")]).await.unwrap();
    assert!(one.store.delete(&log("r")).await.unwrap());
    assert!(other.store.entry(&log("r")).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_listen_does_not_reach_logs_are_asked_for() {
    let Some(server) = Postgres::start().await.unwrap() else { return };
    let url = server.database("pooled").await.unwrap();
    let (host, database) = url.trim_start_matches("postgres://sleuth@").rsplit_once('/').unwrap();
    let pooler = Pooler::of(Path::new(&host.replace("%2F", "/")));
    let pooled = pooler.folder().display().to_string().replace('/', "%2F");
    let (writer, reader) =
        (postgres(&url).await, postgres(&format!("postgres://sleuth@{pooled}/{database}")).await);
    let owner = writer.owner("a").await;
    let lease = writer.run("r", &owner).await;
    let mut head = reader.store.head(&log("r")).await.unwrap();
    let mut seen = Box::pin(follow(Arc::clone(&reader.store), log("r"), 0));
    for after in 0..3 {
        writer.append(&lease, after, vec![delta("x")]).await.unwrap();
        assert_eq!(seen.next().await.unwrap().unwrap().position, after + 1);
    }
    writer.store.post(&log("r"), "k", vec![]).await.unwrap();
    head.wait_for(|head| head.inbox == 1).await.unwrap();
    assert!(pooler.refused() > 0, "nobody was told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_share_a_database_until_one_is_too_old() {
    let Some(server) = Postgres::start().await.unwrap() else { return };
    let url = server.database("releases").await.unwrap();
    let before = postgres(&url).await;
    let owner = before.owner("a").await;
    let lease = before.run("r", &owner).await;
    let (later, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    // What a release does that only adds.
    let adds =
        "ALTER TABLE sleuth.events ADD COLUMN more text; UPDATE sleuth.version SET version = version + 1";
    later.batch_execute(adds).await.unwrap();
    before.append(&lease, 0, vec![began()]).await.unwrap();
    let beside = postgres(&url).await;
    assert_eq!(beside.positions(&log("r")).await, [1]);
    let other = beside.run("other", &owner).await;
    beside.append(&other, 0, vec![began()]).await.unwrap();

    later.batch_execute("UPDATE sleuth.version SET oldest = version").await.unwrap();
    let refused = store::Postgres::connect(&url, None).await.err().unwrap();
    assert!(refused.to_string().contains("this one knows up to"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_count_together_what_an_account_spends() {
    const EACH: u64 = 40;
    let Some(server) = Postgres::start().await.unwrap() else { return };
    accounts::early_enough().await;
    let url = server.database("spending").await.unwrap();
    let benches = [postgres(&url).await, postgres(&url).await, postgres(&url).await];
    let (budget, none) = (Budget { tokens: Some(9), cost_usd: None }, Spent::default());
    let acme = Account {
        id: "acme".into(),
        budget,
        spent: none,
        ..benches[0].store.account("default").await.unwrap().unwrap()
    };
    benches[0].store.add_account(acme).await.unwrap();
    let writers = benches.iter().zip(0..).map(|(bench, number)| async move {
        let id = format!("r{number}");
        let owner = bench.owner(&id).await;
        let lease = bench.run(&id, &owner).await;
        for after in 0..EACH {
            let batch = Batch::new(after, numbered(&id, after, vec![delta("x")]));
            let spent = Spent { tokens: 2, cost_usd: 0.5 };
            bench.store.append(&lease, batch.costing(spent)).await.unwrap();
        }
    });
    join_all(writers).await;
    for bench in &benches {
        let expected = Spent { tokens: 6 * EACH, cost_usd: 1.5 * EACH as f64 };
        assert_eq!(accounts::spent(bench, "acme").await, expected);
    }
}

/// Appends one event after the other and returns how many were acknowledged.
async fn write(bench: &Bench, id: &str, count: u64) -> u64 {
    let owner = bench.owner("a").await;
    let lease = bench.run(id, &owner).await;
    for after in 0..count {
        bench.append(&lease, after, vec![delta(format!("{id} {after}"))]).await.unwrap();
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_loses_nothing_and_repeats_nothing() {
    const LOGS: u64 = 8;
    const EVENTS: u64 = 300;
    let Some(mut server) = Postgres::start().await.unwrap() else { return };
    let bench = postgres(&server.database("killed").await.unwrap()).await;
    let ids: Vec<_> = (0..LOGS).map(|number| format!("r{number}")).collect();
    let writers = join_all(ids.iter().map(|id| write(&bench, id, EVENTS)));
    let chaos = async {
        let mut head = None;
        for part in 1..=3 {
            // Killed while appends are under way, wherever they are.
            while head.is_none() {
                head = bench.store.head(&log("r0")).await.ok();
                tokio::task::yield_now().await;
            }
            let head = head.as_mut().unwrap();
            head.wait_for(|head| head.position >= part * EVENTS / 4).await.unwrap();
            server.kill().await.unwrap();
            server.start_again().await.unwrap();
        }
    };
    let (written, ()) = tokio::join!(writers, chaos);
    for (id, written) in ids.iter().zip(written) {
        let positions = bench.positions(&log(id)).await;
        assert_eq!(positions, (1..=written).collect::<Vec<_>>(), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stays_away_is_an_error_and_not_a_wait_without_end() {
    let Some(mut server) = Postgres::start().await.unwrap() else { return };
    let url = server.database("away").await.unwrap();
    let bench = postgres(&url).await;
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    server.kill().await.unwrap();
    let refused = bench.append(&lease, 0, vec![began()]).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    assert!(store::Postgres::connect(&url, None).await.is_err());
    server.start_again().await.unwrap();
    bench.store.append(&lease, Batch::new(0, numbered("r", 0, vec![began()]))).await.unwrap();
    bench.store.check().await.unwrap();
}
