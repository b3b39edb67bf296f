//! Leases. The owners are in this process, so that their hearts beat in memory.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::LogId;
use rusqlite::{Connection, params};

use super::{
    Sqlite,
    log::{Known, known},
};
use crate::{Error, Lease, OwnerId, Ownership, error::check_name, sql};

#[async_trait]
impl Ownership for Sqlite {
    async fn heartbeat(&self, owner: &OwnerId, ttl: Duration) -> Result<(), Error> {
        check_name("an owner", owner.as_str())?;
        self.owners.beat(owner, ttl);
        Ok(())
    }

    async fn claim(&self, log: &LogId, owner: &OwnerId) -> Result<Option<Lease>, Error> {
        let (log, owner, owners) = (log.clone(), owner.clone(), Arc::clone(&self.owners));
        let claim = move |connection: &Connection| {
            let Known { number, epoch, owner: holder, .. } = known(connection, &log)?;
            if holder.is_some_and(|holder| holder != owner && owners.live(&holder)) {
                return Ok(None);
            }
            let epoch = epoch + 1;
            connection
                .prepare_cached("UPDATE logs SET owner = ?2, epoch = ?3 WHERE number = ?1")?
                .execute(params![number, owner.as_str(), sql::int(epoch)])?;
            Ok(Some(Lease { log, epoch }))
        };
        self.writer.write(claim).await
    }

    async fn release(&self, lease: Lease) -> Result<(), Error> {
        let release = move |connection: &Connection| {
            let number = known(connection, &lease.log)?.number;
            connection
                .prepare_cached(
                    "UPDATE logs SET owner = NULL, epoch = epoch + 1 WHERE number = ?1 AND epoch = ?2",
                )?
                .execute(params![number, sql::int(lease.epoch)])?;
            Ok(())
        };
        self.writer.write(release).await
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<LogId>, Error> {
        let owners = Arc::clone(&self.owners);
        let find = move |connection: &Connection| {
            let mut select = connection.prepare_cached(
                "SELECT id, owner FROM logs WHERE state = 1 OR inbox > taken ORDER BY number",
            )?;
            let mut rows = select.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()?.filter(|_| found.len() < limit) {
                let owner: Option<String> = row.get(1)?;
                if !owner.is_some_and(|owner| owners.live(&OwnerId::new(owner))) {
                    found.push(LogId::new(row.get::<_, String>(0)?));
                }
            }
            Ok(found)
        };
        self.readers.read(find).await
    }
}
