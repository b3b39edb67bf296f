//! Events.

use std::{num::NonZeroUsize, sync::Arc};

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::{Event, LogId};
use tokio::sync::watch;

use super::{
    Postgres,
    appender::Append,
    failure::Failure,
    log::{exists, text},
};
use crate::{
    Batch, Creation, Error, EventLog, Head, Idempotency, Lease, NewLog, State, catalog::now,
    event_log::dense, record, sql,
};

/// Events of one page, however many were asked for.
const PAGE: i64 = 1024;

#[async_trait]
impl EventLog for Postgres {
    async fn create(&self, mut log: NewLog) -> Result<Creation, Error> {
        log.check()?;
        let state = sql::of_state(State::told_by(&log.events).unwrap_or(State::Empty));
        let events = std::mem::take(&mut log.events);
        let records: Vec<_> = events.into_iter().map(|event| record::encode(&log.id, event)).collect();
        let (log, records) = (&log, &records);
        self.database.run(|client, again| create(client, again, log, state, records)).await
    }

    async fn created(&self, asked: &Idempotency) -> Result<Option<LogId>, Error> {
        asked.check()?;
        let find = |client: Object, _| async move {
            let select = client
                .prepare_cached("SELECT id FROM sleuth.logs WHERE scope = $1 AND key = $2 AND digest = $3")
                .await?;
            let row = client.query_opt(&select, &[&asked.scope, &asked.key, &&asked.digest[..]]).await?;
            Ok(row.map(|row| row.try_get::<_, String>(0)).transpose()?.map(LogId::new))
        };
        self.database.run(find).await
    }

    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), Error> {
        dense(&lease.log, batch.expected, &batch.events)?;
        let state = batch.state().map(sql::of_state);
        let Batch { expected, events, taken, spent } = batch;
        let records = events.into_iter().map(|event| record::encode(&lease.log, event)).collect();
        let append = Append {
            lease: lease.clone(),
            expected,
            taken: taken.unwrap_or_default(),
            state,
            records,
            spent,
        };
        self.appender.append(append).await
    }

    async fn read(&self, log: &LogId, after: u64, limit: NonZeroUsize) -> Result<Vec<Arc<Event>>, Error> {
        let limit = i64::try_from(limit.get()).unwrap_or(PAGE).min(PAGE);
        self.database.run(|client, _| page(client, log, sql::int(after), limit)).await
    }

    async fn head(&self, log: &LogId) -> Result<watch::Receiver<Head>, Error> {
        let waiting = self.heads.watch(log);
        let find = |client: Object, _| async move {
            let select =
                client.prepare_cached("SELECT position, inbox FROM sleuth.logs WHERE id = $1").await?;
            let row = client.query_opt(&select, &[&log.as_str()]).await?;
            let row = row.ok_or_else(|| Error::UnknownLog(log.clone()))?;
            Ok(Head { position: sql::uint(row.try_get(0)?), inbox: sql::uint(row.try_get(1)?) })
        };
        let head = self.database.run(find).await?;
        self.heads.advance(log, head);
        Ok(waiting)
    }

    async fn check(&self) -> Result<(), Error> {
        let read_only = self.database.run(|client, _| async move {
            Ok(client.query_one("SELECT pg_is_in_recovery()", &[]).await?.try_get::<_, bool>(0)?)
        });
        if read_only.await? {
            return Err(Error::Unavailable("the database is a standby".to_owned()));
        }
        Ok(())
    }
}

async fn create(
    mut client: Object,
    again: bool,
    log: &NewLog,
    state: i16,
    records: &[Vec<u8>],
) -> Result<Creation, Failure> {
    let change = client.transaction().await?;
    let insert = change
        .prepare_cached(
            "INSERT INTO sleuth.logs (id, account, kind, title, details, scope, key, digest, owner, epoch, state,
                 position, inbox, taken, bytes, created, updated)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $11, 0, 0, $12, $13, $13)
             ON CONFLICT DO NOTHING RETURNING number",
        )
        .await?;
    let asked = log.idempotency.as_ref();
    let bytes = sql::int(records.iter().map(Vec::len).sum::<usize>() as u64);
    let row = change
        .query_opt(
            &insert,
            &[
                &log.id.as_str(),
                &log.meta.account,
                &sql::of_kind(log.meta.kind),
                &text(&log.meta.title),
                &log.meta.details,
                &asked.map(|asked| &asked.scope),
                &asked.map(|asked| &asked.key),
                &asked.map(|asked| &asked.digest[..]),
                &log.owner.as_str(),
                &state,
                &sql::int(records.len() as u64),
                &bytes,
                &now().0,
            ],
        )
        .await?;
    let Some(row) = row else { return earlier(&change, again, log).await };
    let number: i64 = row.try_get(0)?;
    let insert = change
        .prepare_cached(
            "INSERT INTO sleuth.events (log, position, record)
             SELECT $1, e.position, e.record FROM unnest($2::bytea[]) WITH ORDINALITY AS e (record, position)",
        )
        .await?;
    change.execute(&insert, &[&number, &records]).await?;
    change.commit().await?;
    Ok(Creation::New(Lease { log: log.id.clone(), epoch: 1 }))
}

/// What there is instead of a log that could not be created.
async fn earlier(client: &Transaction<'_>, again: bool, log: &NewLog) -> Result<Creation, Failure> {
    if again {
        let select =
            client.prepare_cached("SELECT owner FROM sleuth.logs WHERE id = $1 AND epoch = 1").await?;
        let row = client.query_opt(&select, &[&log.id.as_str()]).await?;
        let owner: Option<String> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        if owner.as_deref() == Some(log.owner.as_str()) {
            return Ok(Creation::New(Lease { log: log.id.clone(), epoch: 1 }));
        }
    }
    let Some(asked) = &log.idempotency else { return Err(Error::Exists(log.id.clone()).into()) };
    let select =
        client.prepare_cached("SELECT id, digest FROM sleuth.logs WHERE scope = $1 AND key = $2").await?;
    let Some(row) = client.query_opt(&select, &[&asked.scope, &asked.key]).await? else {
        return Err(Error::Exists(log.id.clone()).into());
    };
    let (id, digest): (String, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
    let same = digest == asked.digest;
    Ok(if same { Creation::Existing(LogId::new(id)) } else { Creation::Mismatch(LogId::new(id)) })
}

async fn page(client: Object, log: &LogId, after: i64, limit: i64) -> Result<Vec<Arc<Event>>, Failure> {
    let select = client
        .prepare_cached(
            "SELECT position, record FROM (
                 SELECT position, record, (sum(octet_length(record)) OVER (ORDER BY position))::int8 AS upto FROM (
                     SELECT position, record FROM sleuth.events
                     WHERE log = (SELECT number FROM sleuth.logs WHERE id = $1) AND position > $2
                     ORDER BY position LIMIT $3
                 ) asked
             ) page WHERE upto - octet_length(record) < $4 ORDER BY position",
        )
        .await?;
    let most = i64::try_from(sql::PAGE_BYTES).unwrap_or(i64::MAX);
    let rows = client.query(&select, &[&log.as_str(), &after, &limit, &most]).await?;
    if rows.is_empty() {
        exists(&client, log).await?;
    }
    rows.iter()
        .map(|row| {
            let (position, record): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            Ok(Arc::new(record::decode(log, sql::uint(position), record)?))
        })
        .collect()
}
