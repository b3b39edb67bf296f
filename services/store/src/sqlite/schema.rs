//! The tables of a data directory.

use rusqlite::Connection;

use super::OpenError;

/// Each script brings the tables from one version to the next; those that are released never change.
const SCRIPTS: &[&str] = &[
    "
CREATE TABLE logs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    kind INTEGER NOT NULL,
    title TEXT NOT NULL,
    details BLOB NOT NULL,
    scope TEXT,
    key TEXT,
    digest BLOB,
    owner TEXT,
    epoch INTEGER NOT NULL,
    state INTEGER NOT NULL,
    position INTEGER NOT NULL,
    inbox INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (scope, key)
);
CREATE INDEX logs_listed ON logs (account, kind, number);
CREATE INDEX logs_at_work ON logs (number) WHERE state = 1 OR inbox > taken;
-- Not clustered by position: that would halve the rate of appends.
CREATE TABLE events (log INTEGER NOT NULL, position INTEGER NOT NULL, record BLOB NOT NULL);
CREATE UNIQUE INDEX events_at ON events (log, position);
CREATE TABLE inbox (
    log INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    key TEXT NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (log, entry),
    UNIQUE (log, key)
);
CREATE TABLE blobs (log INTEGER NOT NULL, id BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (log, id));
-- Logs that are deleted, and whose rows in the other tables are not yet.
CREATE TABLE doomed (log INTEGER PRIMARY KEY);
CREATE TABLE probe (id INTEGER PRIMARY KEY, time INTEGER NOT NULL);
",
    "
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    default_model TEXT NOT NULL,
    created INTEGER NOT NULL,
    disabled INTEGER
);
INSERT INTO accounts (id, name, default_model, created) VALUES ('default', '', '', 0);
CREATE TABLE credentials (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL REFERENCES accounts,
    kind INTEGER NOT NULL,
    digest BLOB NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    clusters TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER,
    used INTEGER
);
CREATE INDEX credentials_listed ON credentials (account, number);
",
    "
ALTER TABLE accounts ADD COLUMN daily_tokens INTEGER;
ALTER TABLE accounts ADD COLUMN daily_cost REAL;
-- Of the last day on which something was spent.
CREATE TABLE spending (account TEXT PRIMARY KEY, day INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL NOT NULL);
",
];

/// How a writer sees to it that what is committed is on disk, and readers do not wait for it.
const SETTINGS: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16384;
";

/// Makes the tables, or brings them up to date.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), OpenError> {
    connection.execute_batch(SETTINGS)?;
    let change = connection.transaction()?;
    let found: usize = change.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let missing = SCRIPTS.get(found..).ok_or(OpenError::Newer { found, known: SCRIPTS.len() })?;
    for script in missing {
        change.execute_batch(script)?;
    }
    change.pragma_update(None, "user_version", SCRIPTS.len())?;
    Ok(change.commit()?)
}
