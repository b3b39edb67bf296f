//! Blobs.

use async_trait::async_trait;
use domain::LogId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Sqlite, log::known};
use crate::{BlobId, Blobs, Error};

#[async_trait]
impl Blobs for Sqlite {
    async fn put_blob(&self, log: &LogId, bytes: Vec<u8>) -> Result<BlobId, Error> {
        let (log, id) = (log.clone(), BlobId::of(&bytes));
        let put = move |connection: &Connection| {
            let number = known(connection, &log)?.number;
            let added = connection
                .prepare_cached(
                    "INSERT INTO blobs (log, id, body) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                )?
                .execute(params![number, id.0, bytes])?;
            if added > 0 {
                connection
                    .prepare_cached("UPDATE logs SET bytes = bytes + ?2 WHERE number = ?1")?
                    .execute(params![number, bytes.len()])?;
            }
            Ok(id)
        };
        self.writer.write(put).await
    }

    async fn blob(&self, log: &LogId, id: BlobId) -> Result<Option<Vec<u8>>, Error> {
        let log = log.clone();
        let find = move |connection: &Connection| {
            let number = known(connection, &log)?.number;
            let body = connection
                .prepare_cached("SELECT body FROM blobs WHERE log = ?1 AND id = ?2")?
                .query_row(params![number, id.0], |row| row.get(0))
                .optional()?;
            Ok(body)
        };
        self.readers.read(find).await
    }
}
