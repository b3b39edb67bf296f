//! Events per second, appended and delivered, for each store; and whether an event costs the same in a long log.
//!
//! `cargo bench -p store`: 20,000 events (`SLEUTH_BENCH_EVENTS`) in short logs, and a log that grows to 10,000
//! (`SLEUTH_BENCH_LENGTH=1000000` for a million).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

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
/// Comparisons of a long log with a short one.
const ROUNDS: usize = 50;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let events = number("SLEUTH_BENCH_EVENTS").unwrap_or(20_000);
    let longest = number("SLEUTH_BENCH_LENGTH").unwrap_or(10_000);
    let sizes = Sizes { events, longest };
    let folder = tempfile::TempDir::new()?;
    measure("memory", Arc::new(Memory::new(Retention::default())), sizes).await?;
    measure("sqlite", Arc::new(Sqlite::open(folder.path())?), sizes).await?;
    if let Some(server) = postgres::Postgres::start().await? {
        let store = Postgres::connect(&server.database("bench").await?, None).await?;
        measure("postgres", Arc::new(store), sizes).await?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Sizes {
    /// Events in short logs, all together.
    events: u64,
    /// Events in the long log.
    longest: u64,
}

async fn measure(name: &str, store: Arc<dyn Store>, sizes: Sizes) -> anyhow::Result<()> {
    let Sizes { events, longest } = sizes;
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
    let reading = leases.iter().map(|lease| read(Arc::clone(&store), lease.log().clone(), 0, each));
    join_all(reading).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    say(name, "delivered to 50 readers", each * LOGS, began);

    let length = grow(name, &store, longest).await?;
    let began = Instant::now();
    replay(store, LogId::new("long"), length).await?;
    say(name, "replayed, as a takeover does", length, began);
    Ok(())
}

/// Says what an event of a growing log costs against one of a short log, asked for in turn: what else the machine does
/// disturbs both.
async fn grow(name: &str, store: &Arc<dyn Store>, longest: u64) -> anyhow::Result<u64> {
    let (short, long) =
        (create(&**store, "short".to_owned()).await?, create(&**store, "long".to_owned()).await?);
    append(&**store, &short, 0, 10, 100).await?;
    let (mut few, mut many) = (1_000, 0);
    for goal in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|goal| *goal <= longest) {
        append(&**store, &long, many, (goal - many) / 100, 100).await?;
        many = goal;
        let mut costs = [Costs::default(), Costs::default()];
        for round in 0..ROUNDS {
            // Whoever comes first pays for what the other one finds done.
            for is_long in [round % 2 == 0, round % 2 != 0] {
                let (lease, length) = if is_long { (&long, &mut many) } else { (&short, &mut few) };
                let appended = time(append(&**store, lease, *length, 1, 100)).await?;
                let delivered = time(read(Arc::clone(store), lease.log().clone(), *length, 100)).await?;
                *length += 100;
                for (costs, took) in costs.iter_mut().zip([appended, delivered]) {
                    costs.of(is_long).push(took);
                }
            }
        }
        let [appended, delivered] = costs;
        appended.say(name, &format!("appended behind {goal}"));
        delivered.say(name, &format!("delivered behind {goal}"));
    }
    Ok(many)
}

/// What the same took at the end of a short log, and of a long one.
#[derive(Default)]
struct Costs {
    short: Vec<Duration>,
    long: Vec<Duration>,
}

impl Costs {
    fn of(&mut self, is_long: bool) -> &mut Vec<Duration> {
        if is_long { &mut self.long } else { &mut self.short }
    }

    #[expect(clippy::print_stdout, reason = "this is what the program is for")]
    fn say(mut self, store: &str, what: &str) {
        let ratio = median(&mut self.long) / median(&mut self.short);
        println!("{store:<9} {what:<42} {ratio:>9.2} times as long as behind 1000");
    }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}

async fn time(what: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    what.await?;
    Ok(began.elapsed())
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

async fn read(store: Arc<dyn Store>, log: LogId, after: u64, count: u64) -> anyhow::Result<()> {
    let mut events = std::pin::pin!(follow(store, log, after));
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
