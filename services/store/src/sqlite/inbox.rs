//! The inbox.

use std::sync::Arc;

use async_trait::async_trait;
use domain::LogId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Sqlite, log::known};
use crate::{Error, Head, Inbox, Post, Posted, catalog::now, error::check_name, sql};

#[async_trait]
impl Inbox for Sqlite {
    async fn post(&self, log: &LogId, key: &str, payload: Vec<u8>) -> Result<Post, Error> {
        check_name("the key of an inbox entry", key)?;
        let (log, key, heads) = (log.clone(), key.to_owned(), Arc::clone(&self.heads));
        let (id, post) = (log.clone(), move |connection: &Connection| {
            let found = known(connection, &log)?;
            let earlier = connection
                .prepare_cached("SELECT payload FROM inbox WHERE log = ?1 AND key = ?2")?
                .query_row(params![found.number, key], |row| row.get(0))
                .optional()?;
            if let Some(earlier) = earlier {
                return Ok((Post::Earlier(earlier), found.head()));
            }
            let entry = found.inbox + 1;
            connection
                .prepare_cached("INSERT INTO inbox (log, entry, key, payload) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![found.number, sql::int(entry), key, payload])?;
            connection
                .prepare_cached("UPDATE logs SET inbox = ?2, updated = ?3 WHERE number = ?1")?
                .execute(params![found.number, sql::int(entry), now().0])?;
            Ok((Post::First, Head { inbox: entry, ..found.head() }))
        });
        let (post, _) = self.writer.write_then(post, move |(_, head)| heads.advance(&id, *head)).await?;
        Ok(post)
    }

    async fn posted(&self, log: &LogId, after: u64) -> Result<Vec<Posted>, Error> {
        let log = log.clone();
        let find = move |connection: &Connection| {
            let number = known(connection, &log)?.number;
            let mut select = connection.prepare_cached(
                "SELECT entry, key, payload FROM inbox
                 WHERE log = ?1 AND entry > max(?2, (SELECT taken FROM logs WHERE number = ?1)) ORDER BY entry",
            )?;
            let rows = select.query_map(params![number, sql::int(after)], |row| {
                Ok(Posted { entry: sql::uint(row.get(0)?), key: row.get(1)?, payload: row.get(2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.readers.read(find).await
    }
}
