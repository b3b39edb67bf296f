//! Statements about one log.

use domain::{LogId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::{Entry, Error, Head, Meta, OwnerId, sql};

/// A log, as a writer must know it.
pub(super) struct Known {
    pub number: i64,
    pub account: String,
    pub owner: Option<OwnerId>,
    pub epoch: u64,
    pub position: u64,
    pub inbox: u64,
}

/// Finds a log.
pub(super) fn known(connection: &Connection, log: &LogId) -> Result<Known, Error> {
    let known = connection
        .prepare_cached("SELECT number, owner, epoch, position, inbox, account FROM logs WHERE id = ?1")?
        .query_row([log.as_str()], |row| {
            Ok(Known {
                number: row.get(0)?,
                owner: row.get::<_, Option<String>>(1)?.map(OwnerId::new),
                epoch: sql::uint(row.get(2)?),
                position: sql::uint(row.get(3)?),
                inbox: sql::uint(row.get(4)?),
                account: row.get(5)?,
            })
        })
        .optional()?;
    known.ok_or_else(|| Error::UnknownLog(log.clone()))
}

impl Known {
    pub(super) fn head(&self) -> Head {
        Head { position: self.position, inbox: self.inbox }
    }
}

/// What [`entry`] reads.
pub(super) const ENTRY: &str =
    "number, id, account, kind, title, details, state, position, created, updated FROM logs";

/// An entry of the catalog.
pub(super) fn entry(row: &Row<'_>) -> Result<Entry, Error> {
    let log = LogId::new(row.get::<_, String>(1)?);
    let unknown = |why: &str| Error::Corrupt { log: log.clone(), position: 0, why: why.to_owned() };
    Ok(Entry {
        number: sql::uint(row.get(0)?),
        meta: Meta {
            account: row.get(2)?,
            kind: sql::kind(row.get(3)?).ok_or_else(|| unknown("it is of an unknown kind"))?,
            title: row.get(4)?,
            details: row.get(5)?,
        },
        state: sql::state(row.get(6)?).ok_or_else(|| unknown("it is in an unknown state"))?,
        position: sql::uint(row.get(7)?),
        created: Timestamp(row.get(8)?),
        updated: Timestamp(row.get(9)?),
        log,
    })
}
