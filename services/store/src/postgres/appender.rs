//! One task appends, for all logs of this process. What is asked of it while it commits shares the next transaction.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use deadpool_postgres::Object;
use domain::LogId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{Database, accounts::spending, failure::Failure};
use crate::{Error, Head, Lease, Spent, budget::day, catalog::now, heads::Heads, sql};

/// Appends that wait; whoever makes more of them waits.
const QUEUE: usize = 256;
/// Logs, and bytes, that share a transaction.
const GROUP: usize = 128;
const GROUP_BYTES: usize = 8 << 20;

/// An append, ready to be written.
#[derive(Debug)]
pub(super) struct Append {
    pub lease: Lease,
    pub expected: u64,
    pub taken: u64,
    pub state: Option<i16>,
    pub records: Vec<Vec<u8>>,
    pub spent: Spent,
}

#[derive(Debug)]
struct Request {
    append: Append,
    reply: oneshot::Sender<Result<(), Error>>,
}

/// The task. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Appender {
    requests: mpsc::Sender<Request>,
    _task: AbortOnDropHandle<()>,
}

impl Appender {
    pub(super) fn start(database: Database, heads: Arc<Heads>, part: i16) -> Self {
        let (requests, asked) = mpsc::channel(QUEUE);
        let task = tokio::spawn(append_all(database, heads, part, asked));
        Self { requests, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) async fn append(&self, append: Append) -> Result<(), Error> {
        let stopped = || Error::Unavailable("the store is closed".to_owned());
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { append, reply }).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

async fn append_all(database: Database, heads: Arc<Heads>, part: i16, mut asked: mpsc::Receiver<Request>) {
    let statement = statement();
    let mut later = VecDeque::new();
    loop {
        let first = match later.pop_front() {
            Some(request) => request,
            None => match asked.recv().await {
                Some(request) => request,
                None => return,
            },
        };
        let group = group(first, &mut asked, &mut later);
        let (appends, replies): (Vec<_>, Vec<_>) =
            group.into_iter().map(|request| (request.append, request.reply)).unzip();
        let written = database.run(|client, again| write(client, &statement, part, &appends, again)).await;
        for ((position, append), reply) in appends.iter().enumerate().zip(replies) {
            let result = match &written {
                Ok(results) => results.get(position).cloned().unwrap_or(Ok(Head::default())),
                Err(error) => Err(error.clone()),
            };
            if let Ok(head) = result {
                heads.advance(&append.lease.log, head);
            }
            // Whoever asked may have left.
            let _ = reply.send(result.map(drop));
        }
    }
}

/// What is asked for now, each log once: a second append of a log waits for the first.
fn group(first: Request, asked: &mut mpsc::Receiver<Request>, later: &mut VecDeque<Request>) -> Vec<Request> {
    let size = |request: &Request| request.append.records.iter().map(Vec::len).sum::<usize>();
    let mut bytes = size(&first);
    let mut logs = HashSet::from([first.append.lease.log.clone()]);
    let mut group = vec![first];
    let waiting: Vec<_> = later.drain(..).collect();
    let more = waiting.into_iter().chain(std::iter::from_fn(|| asked.try_recv().ok()));
    for request in more.take(GROUP) {
        if bytes < GROUP_BYTES && logs.insert(request.append.lease.log.clone()) {
            bytes += size(&request);
            group.push(request);
        } else {
            later.push_back(request);
        }
    }
    group
}

/// Each log moves on if its lease and its position are as expected; its events follow, what was spent for them is
/// counted, and whoever waits is told.
fn statement() -> String {
    // In the order of the accounts, so that no two processes wait for each other.
    let spent = spending(
        "SELECT account, $14::int2, $15::int8, sum(tokens)::int8, sum(cost) FROM moved
         WHERE tokens > 0 OR cost > 0 GROUP BY account ORDER BY account",
    );
    format!(
        "
WITH asked AS (
    SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int2[], $7::int8[],
                         $12::int8[], $13::float8[])
        AS a (id, epoch, expected, added, taken, state, bytes, tokens, cost)
), moved AS (
    UPDATE sleuth.logs l SET
        position = l.position + a.added, taken = greatest(l.taken, a.taken), bytes = l.bytes + a.bytes,
        state = coalesce(a.state, l.state), updated = $8
    FROM asked a WHERE l.id = a.id AND l.epoch = a.epoch AND l.position = a.expected
    RETURNING l.number, l.id, l.position, l.inbox, l.account, a.tokens, a.cost
), stored AS (
    INSERT INTO sleuth.events (log, position, record)
    SELECT m.number, e.position, e.record
    FROM unnest($9::text[], $10::int8[], $11::bytea[]) AS e (id, position, record) JOIN moved m ON m.id = e.id
), counted AS ({spent})
SELECT id, position, inbox, pg_notify('sleuth', position || ' ' || inbox || ' ' || id) FROM moved"
    )
}

type Results = Vec<Result<Head, Error>>;

async fn write(
    client: Object,
    statement: &str,
    part: i16,
    appends: &[Append],
    again: bool,
) -> Result<Results, Failure> {
    let column = |value: fn(&Append) -> i64| appends.iter().map(value).collect::<Vec<_>>();
    let ids: Vec<_> = appends.iter().map(|append| append.lease.log.as_str()).collect();
    let states: Vec<_> = appends.iter().map(|append| append.state).collect();
    let costs: Vec<_> = appends.iter().map(|append| append.spent.cost_usd).collect();
    let events: Vec<_> = appends
        .iter()
        .flat_map(|append| {
            let log = append.lease.log.as_str();
            append
                .records
                .iter()
                .zip(sql::int(append.expected) + 1..)
                .map(move |(r, at)| (log, at, r.as_slice()))
        })
        .collect();
    let event_logs: Vec<_> = events.iter().map(|(log, _, _)| *log).collect();
    let positions: Vec<_> = events.iter().map(|(_, position, _)| *position).collect();
    let records: Vec<_> = events.iter().map(|(_, _, record)| *record).collect();
    let statement = client.prepare_cached(statement).await?;
    let rows = client
        .query(
            &statement,
            &[
                &ids,
                &column(|append| sql::int(append.lease.epoch)),
                &column(|append| sql::int(append.expected)),
                &column(|append| sql::int(append.records.len() as u64)),
                &column(|append| sql::int(append.taken)),
                &states,
                &column(|append| sql::int(append.records.iter().map(Vec::len).sum::<usize>() as u64)),
                &now().0,
                &event_logs,
                &positions,
                &records,
                &column(|append| sql::int(append.spent.tokens)),
                &costs,
                &part,
                &day(now()),
            ],
        )
        .await?;
    let moved: HashMap<String, Head> = rows
        .iter()
        .map(|row| {
            let head = Head { position: sql::uint(row.get(1)), inbox: sql::uint(row.get(2)) };
            (row.get(0), head)
        })
        .collect();
    let mut results = Vec::with_capacity(appends.len());
    for append in appends {
        results.push(match moved.get(append.lease.log.as_str()) {
            Some(head) => Ok(*head),
            None => refused(&client, append, again).await?,
        });
    }
    Ok(results)
}

/// Why a log did not move; or that it did, in a try whose answer was lost.
async fn refused(client: &Object, append: &Append, again: bool) -> Result<Result<Head, Error>, Failure> {
    let log = append.lease.log.clone();
    let select =
        client.prepare_cached("SELECT epoch, position, inbox, number FROM sleuth.logs WHERE id = $1").await?;
    let Some(row) = client.query_opt(&select, &[&log.as_str()]).await? else {
        return Ok(Err(Error::UnknownLog(log)));
    };
    let head = Head { position: sql::uint(row.get(1)), inbox: sql::uint(row.get(2)) };
    if sql::uint(row.get(0)) != append.lease.epoch {
        return Ok(Err(Error::Fenced(log)));
    }
    if again && stored(client, row.get(3), append).await? {
        return Ok(Ok(head));
    }
    Ok(Err(Error::Conflict { log, expected: append.expected, found: head.position }))
}

/// Whether the events of an append are in the log.
async fn stored(client: &Object, number: i64, append: &Append) -> Result<bool, Failure> {
    let select = client
        .prepare_cached(
            "SELECT count(*) FROM unnest($2::int8[], $3::bytea[]) AS e (position, record)
             JOIN sleuth.events s ON s.log = $1 AND s.position = e.position AND s.record = e.record",
        )
        .await?;
    let positions: Vec<_> = (sql::int(append.expected) + 1..).take(append.records.len()).collect();
    let found: i64 = client.query_one(&select, &[&number, &positions, &append.records]).await?.get(0);
    Ok(!append.records.is_empty() && sql::uint(found) == append.records.len() as u64)
}

/// The name under which a log is told to have moved.
pub(super) const CHANNEL: &str = "sleuth";

/// Reads what a log says when it moves.
pub(super) fn told(payload: &str) -> Option<(LogId, Head)> {
    let mut parts = payload.splitn(3, ' ');
    let position = parts.next()?.parse().ok()?;
    let inbox = parts.next()?.parse().ok()?;
    Some((LogId::new(parts.next()?), Head { position, inbox }))
}
