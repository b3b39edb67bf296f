//! Blobs.

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::LogId;

use super::{
    Postgres,
    log::{exists, held},
};
use crate::{BlobId, Blobs, Error, sql};

#[async_trait]
impl Blobs for Postgres {
    async fn put_blob(&self, log: &LogId, bytes: Vec<u8>) -> Result<BlobId, Error> {
        let id = BlobId::of(&bytes);
        let bytes = &bytes;
        let put = |mut client: Object, _| async move {
            let change = client.transaction().await?;
            let number = held(&change, log).await?;
            let insert = change
                .prepare_cached(
                    "INSERT INTO sleuth.blobs (log, id, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                )
                .await?;
            if change.execute(&insert, &[&number, &&id.0[..], bytes]).await? > 0 {
                let update = change
                    .prepare_cached("UPDATE sleuth.logs SET bytes = bytes + $2 WHERE number = $1")
                    .await?;
                change.execute(&update, &[&number, &sql::int(bytes.len() as u64)]).await?;
            }
            Ok(change.commit().await?)
        };
        self.database.run(put).await?;
        Ok(id)
    }

    async fn blob(&self, log: &LogId, id: BlobId) -> Result<Option<Vec<u8>>, Error> {
        let find = |client: Object, _| async move {
            exists(&client, log).await?;
            let select = client
                .prepare_cached(
                    "SELECT b.body FROM sleuth.blobs b JOIN sleuth.logs l ON l.number = b.log
                     WHERE l.id = $1 AND b.id = $2",
                )
                .await?;
            let row = client.query_opt(&select, &[&log.as_str(), &&id.0[..]]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        };
        self.database.run(find).await
    }
}
