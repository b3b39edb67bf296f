//! Statements about one log.

use deadpool_postgres::GenericClient;
use domain::{LogId, Timestamp};
use tokio_postgres::Row;

use super::failure::Failure;
use crate::{Entry, Error, Meta, sql};

/// Finds the number of a log, and keeps the log from being deleted until the transaction ends.
pub(super) async fn held(client: &impl GenericClient, log: &LogId) -> Result<i64, Failure> {
    let select =
        client.prepare_cached("SELECT number FROM sleuth.logs WHERE id = $1 FOR NO KEY UPDATE").await?;
    let row = client.query_opt(&select, &[&log.as_str()]).await?;
    Ok(row.ok_or_else(|| Error::UnknownLog(log.clone()))?.get(0))
}

/// Whether a log is there.
pub(super) async fn exists(client: &impl GenericClient, log: &LogId) -> Result<(), Failure> {
    let select = client.prepare_cached("SELECT 1 FROM sleuth.logs WHERE id = $1").await?;
    match client.query_opt(&select, &[&log.as_str()]).await? {
        Some(_) => Ok(()),
        None => Err(Error::UnknownLog(log.clone()).into()),
    }
}

/// What [`entry`] reads.
pub(super) const ENTRY: &str =
    "number, id, account, kind, title, details, state, position, created, updated FROM sleuth.logs";

/// An entry of the catalog.
pub(super) fn entry(row: &Row) -> Result<Entry, Failure> {
    let log = LogId::new(row.try_get::<_, String>(1)?);
    let unknown = |why: &str| Error::Corrupt { log: log.clone(), position: 0, why: why.to_owned() };
    Ok(Entry {
        number: sql::uint(row.try_get(0)?),
        meta: Meta {
            account: row.try_get(2)?,
            kind: sql::kind(row.try_get(3)?).ok_or_else(|| unknown("it is of an unknown kind"))?,
            title: row.try_get(4)?,
            details: row.try_get(5)?,
        },
        state: sql::state(row.try_get(6)?).ok_or_else(|| unknown("it is in an unknown state"))?,
        position: sql::uint(row.try_get(7)?),
        created: Timestamp(row.try_get(8)?),
        updated: Timestamp(row.try_get(9)?),
        log,
    })
}

/// A text as the database can hold it: it has no character 0.
pub(super) fn text(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}
