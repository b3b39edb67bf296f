//! Notices. The database's clock says what is still said.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Object;

use super::Postgres;
use crate::{Error, Notices, OwnerId, error::check_name};

#[async_trait]
impl Notices for Postgres {
    async fn notify(&self, from: &OwnerId, text: Vec<u8>, ttl: Duration) -> Result<(), Error> {
        check_name("an owner", from.as_str())?;
        let text = &text;
        let notify = |client: Object, _| async move {
            let notify = client
                .prepare_cached(
                    "INSERT INTO sleuth.notices (id, text, expires)
                     VALUES ($1, $2, now() + make_interval(secs => $3))
                     ON CONFLICT (id) DO UPDATE SET text = excluded.text, expires = excluded.expires",
                )
                .await?;
            client.execute(&notify, &[&from.as_str(), text, &ttl.as_secs_f64()]).await?;
            let clear = client
                .prepare_cached("DELETE FROM sleuth.notices WHERE expires < now() - interval '1 minute'")
                .await?;
            client.execute(&clear, &[]).await?;
            Ok(())
        };
        self.database.run(notify).await
    }

    async fn notices(&self) -> Result<Vec<(OwnerId, Vec<u8>)>, Error> {
        let read = |client: Object, _| async move {
            let select = client
                .prepare_cached(
                    "SELECT id, text FROM sleuth.notices WHERE expires > now() ORDER BY id COLLATE \"C\"",
                )
                .await?;
            let rows = client.query(&select, &[]).await?;
            rows.iter().map(|row| Ok((OwnerId::new(row.try_get::<_, String>(0)?), row.try_get(1)?))).collect()
        };
        self.database.run(read).await
    }
}
