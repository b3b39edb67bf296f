//! The logs there are, and which of them go.

use std::sync::Arc;

use async_trait::async_trait;
use domain::LogId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    Sqlite,
    log::{ENTRY, entry, known},
};
use crate::{Catalog, Entry, Error, Query, Retention, catalog::now, heads::Heads, sql};

/// Events that are deleted in one transaction: others wait for no more than that.
const CHUNK: usize = 2000;
/// Logs that one sweep deletes.
const SWEEP: usize = 100;

#[async_trait]
impl Catalog for Sqlite {
    async fn entry(&self, log: &LogId) -> Result<Entry, Error> {
        let log = log.clone();
        let find = move |connection: &Connection| {
            let mut select = connection.prepare_cached(&format!("SELECT {ENTRY} WHERE id = ?1"))?;
            let mut rows = select.query([log.as_str()])?;
            rows.next()?.map(entry).unwrap_or(Err(Error::UnknownLog(log)))
        };
        self.readers.read(find).await
    }

    async fn list(&self, query: Query) -> Result<Vec<Entry>, Error> {
        let find = move |connection: &Connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {ENTRY} WHERE account = ?1 AND kind = ?2 AND number < ?3 ORDER BY number DESC LIMIT ?4"
            ))?;
            let before = query.before.map_or(i64::MAX, sql::int);
            let limit = i64::try_from(query.limit.get()).unwrap_or(i64::MAX);
            let mut rows = select.query(params![query.account, sql::of_kind(query.kind), before, limit])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                entries.push(entry(row)?);
            }
            Ok(entries)
        };
        self.readers.read(find).await
    }

    async fn describe(&self, log: &LogId, title: String, details: Vec<u8>) -> Result<(), Error> {
        let log = log.clone();
        let describe = move |connection: &Connection| {
            let number = known(connection, &log)?.number;
            connection
                .prepare_cached("UPDATE logs SET title = ?2, details = ?3, updated = ?4 WHERE number = ?1")?
                .execute(params![number, title, details, now().0])?;
            Ok(())
        };
        self.writer.write(describe).await
    }

    async fn amend(
        &self,
        log: &LogId,
        before: Vec<u8>,
        title: String,
        details: Vec<u8>,
    ) -> Result<bool, Error> {
        let log = log.clone();
        let amend = move |connection: &Connection| {
            let number = known(connection, &log)?.number;
            let amended = connection
                .prepare_cached(
                    "UPDATE logs SET title = ?3, details = ?4, updated = ?5 WHERE number = ?1 AND details = ?2",
                )?
                .execute(params![number, before, title, details, now().0])?;
            Ok(amended > 0)
        };
        self.writer.write(amend).await
    }

    async fn delete(&self, log: &LogId) -> Result<bool, Error> {
        let (log, heads) = (log.clone(), Arc::clone(&self.heads));
        let delete = move |connection: &Connection| {
            let number = connection
                .prepare_cached("SELECT number, id FROM logs WHERE id = ?1")?
                .query_row([log.as_str()], |row| Ok((row.get(0)?, LogId::new(row.get::<_, String>(1)?))))
                .optional()?;
            doom(connection, number)
        };
        let gone = self.writer.write_then(delete, move |gone| close(&heads, gone)).await?;
        self.purge().await?;
        Ok(!gone.is_empty())
    }

    async fn sweep(&self, keep: Retention) -> Result<usize, Error> {
        let heads = Arc::clone(&self.heads);
        let sweep = move |connection: &Connection| doom(connection, at_rest(connection, keep)?);
        let gone = self.writer.write_then(sweep, move |gone| close(&heads, gone)).await?;
        self.purge().await?;
        Ok(gone.len())
    }
}

impl Sqlite {
    /// Deletes what is left of logs that are deleted.
    async fn purge(&self) -> Result<(), Error> {
        while self.writer.write(purge_some).await? {}
        Ok(())
    }
}

/// Deletes logs; the rest of their rows goes later.
fn doom(connection: &Connection, logs: impl IntoIterator<Item = (i64, LogId)>) -> Result<Vec<LogId>, Error> {
    let mut gone = Vec::new();
    for (number, log) in logs {
        connection.prepare_cached("DELETE FROM logs WHERE number = ?1")?.execute([number])?;
        connection.prepare_cached("INSERT INTO doomed (log) VALUES (?1)")?.execute([number])?;
        gone.push(log);
    }
    Ok(gone)
}

fn close(heads: &Heads, gone: &[LogId]) {
    gone.iter().for_each(|log| heads.close(log));
}

/// Logs at rest that need not be kept.
fn at_rest(connection: &Connection, keep: Retention) -> Result<Vec<(i64, LogId)>, Error> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT number, id FROM (
             SELECT number, id, updated, row_number() OVER newest AS nth, sum(bytes) OVER newest AS total
             FROM logs WHERE state <> 1 AND kind <> {} AND inbox <= taken
             WINDOW newest AS (ORDER BY updated DESC, number DESC)
         ) WHERE updated < ?1 OR nth > ?2 OR (nth > 1 AND total > ?3) ORDER BY updated, number LIMIT ?4",
        sql::AGENT,
    ))?;
    let most = |most: Option<u64>| most.map_or(i64::MAX, sql::int);
    let rows = select.query_map(params![keep.oldest(), most(keep.logs), most(keep.bytes), SWEEP], |row| {
        Ok((row.get(0)?, LogId::new(row.get::<_, String>(1)?)))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes some rows of a log that is deleted. False if there is none.
fn purge_some(connection: &Connection) -> Result<bool, Error> {
    let doomed = connection
        .prepare_cached("SELECT log FROM doomed LIMIT 1")?
        .query_row([], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(log) = doomed else { return Ok(false) };
    let gone = connection
        .prepare_cached(
            "DELETE FROM events WHERE rowid IN (SELECT rowid FROM events WHERE log = ?1 LIMIT ?2)",
        )?
        .execute(params![log, CHUNK])?;
    if gone < CHUNK {
        for rest in [
            "DELETE FROM inbox WHERE log = ?1",
            "DELETE FROM blobs WHERE log = ?1",
            "DELETE FROM doomed WHERE log = ?1",
        ] {
            connection.prepare_cached(rest)?.execute([log])?;
        }
    }
    Ok(true)
}
