//! Events per second, appended and delivered, for each store; and whether an event costs the same in a long log.
//!
//! `cargo bench -p store`; `SLEUTH_BENCH_EVENTS=1000000` for a log of a million events (20,000 by default).

use std::{sync::Arc, time::Instant};

use domain::{AgentId, Event, EventKind, Family, Limits, LogId, MessageId, RunId, Timestamp};
use futures_util::{StreamExt as _, future::join_all};
use harness::postgres;
use store::{
    Batch, Creation, Kind, Lease, Memory, Meta, NewLog, OwnerId, Postgres, Retention, Sqlite, Store, follow,
};

/// Bytes of text in an event.
const TEXT: usize = 300;
/// Logs that are written at the same time.
const LOGS: u64 = 50;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let events =
        std::env::var("SLEUTH_BENCH_EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let folder = tempfile::TempDir::new()?;
    measure("memory", Arc::new(Memory::new(Retention::default())), events).await?;
    measure("sqlite", Arc::new(Sqlite::open(folder.path())?), events).await?;
    if let Some(server) = postgres::Postgres::start().await? {
        let store = Postgres::connect(&server.database("bench").await?, None).await?;
        measure("postgres", Arc::new(store), events).await?;
    }
    Ok(())
}

async fn measure(name: &str, store: Arc<dyn Store>, events: u64) -> anyhow::Result<()> {
    let lone = create(&*store, "lone".to_owned()).await?;
    let appends = (events / 10).max(1);
    let began = Instant::now();
    append(&*store, &lone, 0, appends, 1).await?;
    say(name, "appended one by one to one log", appends, began);

    let leases = join_all((0..LOGS).map(|number| create(&*store, format!("r{number}"))));
    let leases = leases.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let each = (events / LOGS).max(1);
    let began = Instant::now();
    let writing = join_all(leases.iter().map(|lease| append(&*store, lease, 0, each, 1)));
    writing.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    say(name, "appended one by one to 50 logs at once", each * LOGS, began);

    let began = Instant::now();
    let reading = leases.iter().map(|lease| read(Arc::clone(&store), lease.log().clone(), each));
    join_all(reading).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    say(name, "delivered to 50 readers", each * LOGS, began);

    let long = create(&*store, "long".to_owned()).await?;
    let mut length = 0;
    for goal in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|goal| *goal <= events) {
        append(&*store, &long, length, (goal - length) / 100, 100).await?;
        let began = Instant::now();
        append(&*store, &long, goal, 10, 100).await?;
        say(name, &format!("appended, 100 at a time, behind {goal}"), 1000, began);
        let began = Instant::now();
        let delivered: Vec<_> =
            follow(Arc::clone(&store), long.log().clone(), goal).take(1000).collect().await;
        say(name, &format!("delivered to one reader, behind {goal}"), delivered.len() as u64, began);
        length = goal + 1000;
    }
    let began = Instant::now();
    replay(store, long.log().clone(), length).await?;
    say(name, "replayed, as a takeover does", length, began);
    Ok(())
}

/// Folds a log from its beginning.
async fn replay(store: Arc<dyn Store>, log: LogId, count: u64) -> anyhow::Result<()> {
    let events = follow(store, log, 0).take(count as usize).collect::<Vec<_>>().await;
    let events = events.into_iter().collect::<Result<Vec<_>, _>>()?;
    std::hint::black_box(Family::fold(Limits::default(), events.iter().map(AsRef::as_ref)));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn say(store: &str, what: &str, events: u64, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    let (rate, cost) = (events as f64 / seconds, seconds * 1e6 / events as f64);
    println!("{store:<9} {what:<42} {rate:>9.0} events/s {cost:>8.1} us each");
}

async fn create(store: &dyn Store, id: String) -> anyhow::Result<Lease> {
    let meta = Meta { account: "a".into(), kind: Kind::Run, title: String::new(), details: Vec::new() };
    let (id, owner) = (LogId::new(id), OwnerId::new("bench"));
    match store.create(NewLog { id, owner, meta, idempotency: None, events: Vec::new() }).await? {
        Creation::New(lease) => Ok(lease),
        other => anyhow::bail!("{other:?}"),
    }
}

async fn append(store: &dyn Store, lease: &Lease, after: u64, batches: u64, size: u64) -> anyhow::Result<()> {
    for batch in 0..batches {
        let expected = after + batch * size;
        let events = (expected + 1..=expected + size).map(|position| event(lease.log(), position));
        store.append(lease, Batch::new(expected, events.collect())).await?;
    }
    Ok(())
}

async fn read(store: Arc<dyn Store>, log: LogId, count: u64) -> anyhow::Result<()> {
    let mut events = std::pin::pin!(follow(store, log, 0));
    for _ in 0..count {
        events.next().await.transpose()?;
    }
    Ok(())
}

fn event(log: &LogId, position: u64) -> Event {
    let kind = EventKind::TextDelta { message: MessageId::new("m"), text: "x".repeat(TEXT) };
    let (run, agent) = (RunId::new(log.as_str()), AgentId::main());
    Event { run, position, time: Timestamp(0), agent, parent: None, kind }
}
