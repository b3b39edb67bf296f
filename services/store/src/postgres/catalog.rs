//! The logs there are, and which of them go.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::LogId;

use super::{
    Postgres,
    failure::Failure,
    log::{ENTRY, entry, exists, text},
};
use crate::{Catalog, Entry, Error, Query, Retention, catalog::now, sql};

/// Logs that one sweep deletes.
const SWEEP: i64 = 20;

#[async_trait]
impl Catalog for Postgres {
    async fn entry(&self, log: &LogId) -> Result<Entry, Error> {
        let find = |client: Object, _| async move {
            let select = client.prepare_cached(&format!("SELECT {ENTRY} WHERE id = $1")).await?;
            let row = client.query_opt(&select, &[&log.as_str()]).await?;
            entry(&row.ok_or_else(|| Error::UnknownLog(log.clone()))?)
        };
        self.database.run(find).await
    }

    async fn list(&self, query: Query) -> Result<Vec<Entry>, Error> {
        let query = &query;
        let find = |client: Object, _| async move {
            let select = client
                .prepare_cached(&format!(
                    "SELECT {ENTRY} WHERE account = $1 AND kind = $2 AND number < $3
                     ORDER BY number DESC LIMIT $4"
                ))
                .await?;
            let before = query.before.map_or(i64::MAX, sql::int);
            let limit = i64::try_from(query.limit.get()).unwrap_or(i64::MAX);
            let kind = sql::of_kind(query.kind);
            let rows = client.query(&select, &[&query.account, &kind, &before, &limit]).await?;
            rows.iter().map(entry).collect()
        };
        self.database.run(find).await
    }

    async fn describe(&self, log: &LogId, title: String, details: Vec<u8>) -> Result<(), Error> {
        let (title, details) = (&text(&title), &details);
        let describe = |client: Object, _| async move {
            let update = client
                .prepare_cached("UPDATE sleuth.logs SET title = $2, details = $3, updated = $4 WHERE id = $1")
                .await?;
            match client.execute(&update, &[&log.as_str(), title, details, &now().0]).await? {
                0 => exists(&client, log).await,
                _ => Ok(()),
            }
        };
        self.database.run(describe).await
    }

    async fn amend(
        &self,
        log: &LogId,
        before: Vec<u8>,
        title: String,
        details: Vec<u8>,
    ) -> Result<bool, Error> {
        let (before, title, details) = (&before, &text(&title), &details);
        let amend = |client: Object, _| async move {
            // What is done again after a lost connection finds what it has written.
            let update = client
                .prepare_cached(
                    "UPDATE sleuth.logs SET title = $3, details = $4, updated = $5 \
                     WHERE id = $1 AND details IN ($2, $4)",
                )
                .await?;
            match client.execute(&update, &[&log.as_str(), before, title, details, &now().0]).await? {
                0 => exists(&client, log).await.map(|()| false),
                _ => Ok(true),
            }
        };
        self.database.run(amend).await
    }

    async fn delete(&self, log: &LogId) -> Result<bool, Error> {
        let delete = |mut client: Object, _| async move {
            let change = client.transaction().await?;
            let delete =
                change.prepare_cached("DELETE FROM sleuth.logs WHERE id = $1 RETURNING number").await?;
            let Some(row) = change.query_opt(&delete, &[&log.as_str()]).await? else { return Ok(false) };
            purge(&change, &[row.try_get(0)?]).await?;
            change.commit().await?;
            Ok(true)
        };
        let gone = self.database.run(delete).await?;
        self.heads.close(log);
        Ok(gone)
    }

    async fn sweep(&self, keep: Retention) -> Result<usize, Error> {
        let gone = self.database.run(|client, _| sweep(client, keep)).await?;
        gone.iter().for_each(|log| self.heads.close(log));
        Ok(gone.len())
    }
}

async fn sweep(mut client: Object, keep: Retention) -> Result<Vec<LogId>, Failure> {
    let change = client.transaction().await?;
    change.execute("DELETE FROM sleuth.owners WHERE expires < now() - interval '1 day'", &[]).await?;
    // A log that changed since it was found stays.
    let delete = change
        .prepare_cached(&format!(
            "DELETE FROM sleuth.logs l USING (
                 SELECT number, updated FROM (
                     SELECT number, updated, row_number() OVER newest AS nth, (sum(bytes) OVER newest)::int8 AS total
                     FROM sleuth.logs WHERE state <> 1 AND kind <> {} AND inbox <= taken
                     WINDOW newest AS (ORDER BY updated DESC, number DESC)
                 ) resting
                 WHERE updated < $1 OR nth > $2 OR (nth > 1 AND total > $3) ORDER BY updated, number LIMIT $4
             ) old WHERE l.number = old.number AND l.updated = old.updated AND state <> 1 AND inbox <= taken
             RETURNING l.number, l.id",
            sql::AGENT,
        ))
        .await?;
    let most = |most: Option<u64>| most.map_or(i64::MAX, sql::int);
    let rows = change.query(&delete, &[&keep.oldest(), &most(keep.logs), &most(keep.bytes), &SWEEP]).await?;
    let numbers = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    purge(&change, &numbers).await?;
    change.commit().await?;
    rows.iter().map(|row| Ok(LogId::new(row.try_get::<_, String>(1)?))).collect()
}

/// Deletes the rest of logs that are deleted.
async fn purge(change: &Transaction<'_>, logs: &[i64]) -> Result<(), Failure> {
    for rest in ["events", "inbox", "blobs"] {
        let delete = change.prepare_cached(&format!("DELETE FROM sleuth.{rest} WHERE log = ANY($1)")).await?;
        change.execute(&delete, &[&logs]).await?;
    }
    Ok(())
}
