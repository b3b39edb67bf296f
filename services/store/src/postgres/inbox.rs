//! The inbox.

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::LogId;

use super::{
    Postgres,
    appender::CHANNEL,
    failure::Failure,
    log::{exists, held},
};
use crate::{Error, Head, Inbox, Post, Posted, catalog::now, error::check_name, sql};

#[async_trait]
impl Inbox for Postgres {
    async fn post(&self, log: &LogId, key: &str, payload: Vec<u8>) -> Result<Post, Error> {
        check_name("the key of an inbox entry", key)?;
        // Tells an entry of our own from an equal one, where the answer to the first try was lost.
        let nonce = fastrand::i64(..);
        let payload = &payload;
        let (post, head) = self.database.run(|client, _| post(client, log, key, nonce, payload)).await?;
        if let Some(head) = head {
            self.heads.advance(log, head);
        }
        Ok(post)
    }

    async fn posted(&self, log: &LogId, after: u64) -> Result<Vec<Posted>, Error> {
        let find = |client: Object, _| async move {
            exists(&client, log).await?;
            let select = client
                .prepare_cached(
                    "SELECT i.entry, i.key, i.payload FROM sleuth.inbox i JOIN sleuth.logs l ON l.number = i.log
                     WHERE l.id = $1 AND i.entry > greatest(l.taken, $2) ORDER BY i.entry",
                )
                .await?;
            let rows = client.query(&select, &[&log.as_str(), &sql::int(after)]).await?;
            let posted = rows.iter().map(|row| {
                let entry = sql::uint(row.try_get(0)?);
                Ok(Posted { entry, key: row.try_get(1)?, payload: row.try_get(2)? })
            });
            posted.collect()
        };
        self.database.run(find).await
    }
}

async fn post(
    mut client: Object,
    log: &LogId,
    key: &str,
    nonce: i64,
    payload: &[u8],
) -> Result<(Post, Option<Head>), Failure> {
    let change = client.transaction().await?;
    let number = held(&change, log).await?;
    let select =
        change.prepare_cached("SELECT payload, nonce FROM sleuth.inbox WHERE log = $1 AND key = $2").await?;
    if let Some(row) = change.query_opt(&select, &[&number, &key]).await? {
        let ours = row.try_get::<_, i64>(1)? == nonce;
        return Ok((if ours { Post::First } else { Post::Earlier(row.try_get(0)?) }, None));
    }
    let update = change
        .prepare_cached(
            "UPDATE sleuth.logs SET inbox = inbox + 1, updated = $2 WHERE number = $1 RETURNING position, inbox",
        )
        .await?;
    let row = change.query_one(&update, &[&number, &now().0]).await?;
    let (position, entry): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let insert = change
        .prepare_cached(
            "INSERT INTO sleuth.inbox (log, entry, key, nonce, payload) VALUES ($1, $2, $3, $4, $5)",
        )
        .await?;
    change.execute(&insert, &[&number, &entry, &key, &nonce, &payload]).await?;
    let news = format!("{position} {entry} {log}");
    change.execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &news]).await?;
    change.commit().await?;
    Ok((Post::First, Some(Head { position: sql::uint(position), inbox: sql::uint(entry) })))
}
