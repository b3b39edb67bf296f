//! Leases. The database's clock says who lives.

use std::time::Duration;

use async_trait::async_trait;
use domain::LogId;

use super::{Postgres, log::exists};
use crate::{Error, Lease, OwnerId, Ownership, error::check_name, sql};

#[async_trait]
impl Ownership for Postgres {
    async fn heartbeat(&self, owner: &OwnerId, ttl: Duration) -> Result<(), Error> {
        check_name("an owner", owner.as_str())?;
        let beat = |client: deadpool_postgres::Object, _| async move {
            let beat = client
                .prepare_cached(
                    "INSERT INTO sleuth.owners (id, expires) VALUES ($1, now() + make_interval(secs => $2))
                     ON CONFLICT (id) DO UPDATE SET expires = excluded.expires",
                )
                .await?;
            client.execute(&beat, &[&owner.as_str(), &ttl.as_secs_f64()]).await?;
            Ok(())
        };
        self.database.run(beat).await
    }

    async fn claim(&self, log: &LogId, owner: &OwnerId) -> Result<Option<Lease>, Error> {
        let claim = |client: deadpool_postgres::Object, _| async move {
            let claim = client
                .prepare_cached(
                    "UPDATE sleuth.logs l SET owner = $2, epoch = epoch + 1
                     WHERE id = $1 AND (owner IS NULL OR owner = $2 OR NOT EXISTS (
                         SELECT FROM sleuth.owners o WHERE o.id = l.owner AND o.expires > now()))
                     RETURNING epoch",
                )
                .await?;
            let Some(row) = client.query_opt(&claim, &[&log.as_str(), &owner.as_str()]).await? else {
                exists(&client, log).await?;
                return Ok(None);
            };
            Ok(Some(Lease { log: log.clone(), epoch: sql::uint(row.try_get(0)?) }))
        };
        self.database.run(claim).await
    }

    async fn release(&self, lease: Lease) -> Result<(), Error> {
        let lease = &lease;
        let release = |client: deadpool_postgres::Object, _| async move {
            let release = client
                .prepare_cached(
                    "UPDATE sleuth.logs SET owner = NULL, epoch = epoch + 1 WHERE id = $1 AND epoch = $2",
                )
                .await?;
            if client.execute(&release, &[&lease.log.as_str(), &sql::int(lease.epoch)]).await? == 0 {
                exists(&client, &lease.log).await?;
            }
            Ok(())
        };
        self.database.run(release).await
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<LogId>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let find = |client: deadpool_postgres::Object, _| async move {
            let select = client
                .prepare_cached(
                    "SELECT l.id FROM sleuth.logs l
                     LEFT JOIN sleuth.owners o ON o.id = l.owner AND o.expires > now()
                     WHERE (l.state = 1 OR l.inbox > l.taken) AND o.id IS NULL ORDER BY l.number LIMIT $1",
                )
                .await?;
            let rows = client.query(&select, &[&limit]).await?;
            rows.iter().map(|row| Ok(LogId::new(row.try_get::<_, String>(0)?))).collect()
        };
        self.database.run(find).await
    }
}
