//! Events.

use std::{num::NonZeroUsize, sync::Arc};

use async_trait::async_trait;
use domain::{Event, LogId};
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::watch;

use super::{Sqlite, accounts::spend, log::known};
use crate::{
    Batch, Creation, Error, EventLog, Head, Idempotency, Lease, NewLog, State, catalog::now,
    event_log::dense, record, sql,
};

#[async_trait]
impl EventLog for Sqlite {
    async fn create(&self, log: NewLog) -> Result<Creation, Error> {
        log.check()?;
        let NewLog { id, owner, meta, idempotency, events } = log;
        let state = sql::of_state(State::told_by(&events).unwrap_or(State::Empty));
        let records = encoded(&id, events);
        let create = move |connection: &Connection| {
            if let Some(asked) = &idempotency
                && let Some(earlier) = repeated(connection, asked)?
            {
                return Ok(earlier);
            }
            let (scope, key, digest) = match idempotency {
                Some(Idempotency { scope, key, digest }) => (Some(scope), Some(key), Some(digest)),
                None => (None, None, None),
            };
            let (time, position) = (now().0, records.len());
            let inserted = connection
                .prepare_cached(
                    "INSERT INTO logs (id, account, kind, title, details, scope, key, digest, owner, epoch, state,
                         position, inbox, taken, bytes, created, updated)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?11, 0, 0, ?12, ?13, ?13)
                     ON CONFLICT (id) DO NOTHING",
                )?
                .execute(params![
                    id.as_str(), meta.account, sql::of_kind(meta.kind), meta.title, meta.details, scope, key,
                    digest, owner.as_str(), state, position, bytes(&records), time
                ])?;
            if inserted == 0 {
                return Err(Error::Exists(id));
            }
            insert(connection, connection.last_insert_rowid(), 0, &records)?;
            Ok(Creation::New(Lease { log: id, epoch: 1 }))
        };
        self.writer.write(create).await
    }

    async fn created(&self, asked: &Idempotency) -> Result<Option<LogId>, Error> {
        asked.check()?;
        let asked = asked.clone();
        let earlier = self.readers.read(move |connection| repeated(connection, &asked)).await?;
        Ok(earlier.and_then(|earlier| match earlier {
            Creation::Existing(log) => Some(log),
            Creation::New(_) | Creation::Mismatch(_) => None,
        }))
    }

    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), Error> {
        let Lease { log, epoch } = lease.clone();
        dense(&log, batch.expected, &batch.events)?;
        let state = batch.state().map(sql::of_state);
        let Batch { expected, events, taken, spent } = batch;
        let records = encoded(&log, events);
        let heads = Arc::clone(&self.heads);
        let (id, append) = (log.clone(), move |connection: &Connection| {
            let found = known(connection, &log)?;
            if found.epoch != epoch {
                return Err(Error::Fenced(log));
            }
            if found.position != expected {
                return Err(Error::Conflict { log, expected, found: found.position });
            }
            insert(connection, found.number, expected, &records)?;
            spend(connection, &found.account, spent)?;
            let position = expected + records.len() as u64;
            connection
                .prepare_cached(
                    "UPDATE logs SET position = ?2, taken = max(taken, ?3), bytes = bytes + ?4,
                         state = coalesce(?5, state), updated = ?6
                     WHERE number = ?1",
                )?
                .execute(params![
                    found.number,
                    sql::int(position),
                    sql::int(taken.unwrap_or_default()),
                    bytes(&records),
                    state,
                    now().0
                ])?;
            Ok(Head { position, ..found.head() })
        });
        self.writer.write_then(append, move |head| heads.advance(&id, *head)).await?;
        Ok(())
    }

    async fn read(&self, log: &LogId, after: u64, limit: NonZeroUsize) -> Result<Vec<Arc<Event>>, Error> {
        let log = log.clone();
        self.readers.read(move |connection| page(connection, &log, after, limit)).await
    }

    async fn head(&self, log: &LogId) -> Result<watch::Receiver<Head>, Error> {
        let waiting = self.heads.watch(log);
        let id = log.clone();
        let head = self.readers.read(move |connection| Ok(known(connection, &id)?.head())).await?;
        self.heads.advance(log, head);
        Ok(waiting)
    }

    async fn check(&self) -> Result<(), Error> {
        self.writer
            .write(|connection| {
                connection
                    .prepare_cached("INSERT OR REPLACE INTO probe (id, time) VALUES (1, ?1)")?
                    .execute([now().0])?;
                Ok(())
            })
            .await
    }
}

fn encoded(log: &LogId, events: Vec<Event>) -> Vec<Vec<u8>> {
    events.into_iter().map(|event| record::encode(log, event)).collect()
}

fn bytes(records: &[Vec<u8>]) -> usize {
    records.iter().map(Vec::len).sum()
}

fn insert(connection: &Connection, log: i64, after: u64, records: &[Vec<u8>]) -> Result<(), Error> {
    let mut insert =
        connection.prepare_cached("INSERT INTO events (log, position, record) VALUES (?1, ?2, ?3)")?;
    for (record, position) in records.iter().zip(sql::int(after) + 1..) {
        insert.execute(params![log, position, record])?;
    }
    Ok(())
}

/// The log of an earlier request with the same key.
fn repeated(connection: &Connection, asked: &Idempotency) -> Result<Option<Creation>, Error> {
    let earlier = connection
        .prepare_cached("SELECT id, digest FROM logs WHERE scope = ?1 AND key = ?2")?
        .query_row(params![asked.scope, asked.key], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .optional()?;
    Ok(earlier.map(|(id, digest): (_, [u8; 32])| {
        let log = LogId::new(id);
        if digest == asked.digest { Creation::Existing(log) } else { Creation::Mismatch(log) }
    }))
}

fn page(
    connection: &Connection,
    log: &LogId,
    after: u64,
    limit: NonZeroUsize,
) -> Result<Vec<Arc<Event>>, Error> {
    let number = known(connection, log)?.number;
    let mut select = connection.prepare_cached(
        "SELECT position, record FROM events WHERE log = ?1 AND position > ?2 ORDER BY position LIMIT ?3",
    )?;
    let limit = i64::try_from(limit.get()).unwrap_or(i64::MAX);
    let mut rows = select.query(params![number, sql::int(after), limit])?;
    let (mut page, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let record = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        size += record.len();
        if size > sql::PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(Arc::new(record::decode(log, sql::uint(row.get(0)?), record)?));
    }
    Ok(page)
}
