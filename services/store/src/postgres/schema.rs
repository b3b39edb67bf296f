//! The tables, in a schema of their own. Several versions of the program may use them at the same time: a change
//! first only adds, and what nobody needs any more goes a release later.

use tokio_postgres::Client;

use super::OpenError;

/// Each script brings the tables from one version to the next; those that are released never change.
const SCRIPTS: &[&str] = &["
CREATE TABLE sleuth.logs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    account text NOT NULL,
    kind smallint NOT NULL,
    title text NOT NULL,
    details bytea NOT NULL,
    scope text,
    key text,
    digest bytea,
    owner text,
    epoch bigint NOT NULL,
    state smallint NOT NULL,
    position bigint NOT NULL,
    inbox bigint NOT NULL,
    taken bigint NOT NULL,
    bytes bigint NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    UNIQUE (scope, key)
) WITH (fillfactor = 70);
CREATE INDEX logs_listed ON sleuth.logs (account, kind, number);
CREATE INDEX logs_at_work ON sleuth.logs (number) WHERE state = 1 OR inbox > taken;
CREATE TABLE sleuth.events (
    log bigint NOT NULL,
    position bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (log, position)
);
CREATE TABLE sleuth.inbox (
    log bigint NOT NULL,
    entry bigint NOT NULL,
    key text NOT NULL,
    nonce bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (log, entry),
    UNIQUE (log, key)
);
CREATE TABLE sleuth.blobs (log bigint NOT NULL, id bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (log, id));
CREATE TABLE sleuth.owners (id text PRIMARY KEY, expires timestamptz NOT NULL);
", "
CREATE TABLE sleuth.accounts (
    id text PRIMARY KEY,
    name text NOT NULL,
    default_model text NOT NULL,
    created bigint NOT NULL,
    disabled bigint
);
INSERT INTO sleuth.accounts (id, name, default_model, created) VALUES ('default', '', '', 0);
CREATE TABLE sleuth.credentials (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    account text NOT NULL REFERENCES sleuth.accounts,
    kind smallint NOT NULL,
    digest bytea NOT NULL,
    name text NOT NULL,
    scopes text NOT NULL,
    clusters text NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    revoked bigint,
    used bigint
);
CREATE INDEX credentials_listed ON sleuth.credentials (account, number);
", "
CREATE UNLOGGED TABLE sleuth.notices (id text PRIMARY KEY, text bytea NOT NULL, expires timestamptz NOT NULL);
", "
ALTER TABLE sleuth.accounts ADD COLUMN daily_tokens bigint, ADD COLUMN daily_cost double precision;
-- Of the last day on which something was spent. In parts, so that processes need not wait for each other.
CREATE TABLE sleuth.spending (
    account text NOT NULL,
    part smallint NOT NULL,
    day bigint NOT NULL,
    tokens bigint NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (account, part)
) WITH (fillfactor = 70);
"];
/// The oldest program, by the scripts that it knows, that can work with the tables as they are now.
const OLDEST: i32 = 1;
/// The lock under which one process at a time changes the tables.
const LOCK: i64 = 0x736c_6575_7468;

/// Makes the tables, or brings them up to date, while no other process does.
pub(super) async fn prepare(client: &mut Client) -> Result<(), OpenError> {
    let change = client.transaction().await?;
    change.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // Asked first: whoever may not create schemas may still use one.
    let there = change.query_one("SELECT to_regclass('sleuth.version') IS NOT NULL", &[]).await?;
    if !there.try_get::<_, bool>(0)? {
        change
            .batch_execute(
                "CREATE SCHEMA IF NOT EXISTS sleuth;
                 CREATE TABLE sleuth.version (version int NOT NULL, oldest int NOT NULL)",
            )
            .await?;
    }
    let row = change.query_opt("SELECT version, oldest FROM sleuth.version", &[]).await?;
    let (version, oldest) = row.map_or((0, 0), |row| (row.get::<_, i32>(0), row.get::<_, i32>(1)));
    let known = i32::try_from(SCRIPTS.len()).unwrap_or(i32::MAX);
    if oldest > known {
        return Err(OpenError::Newer { found: oldest, known });
    }
    let done = usize::try_from(version).unwrap_or_default();
    for script in SCRIPTS.get(done..).unwrap_or_default() {
        change.batch_execute(script).await?;
    }
    if version < known {
        change.execute("DELETE FROM sleuth.version", &[]).await?;
        change.execute("INSERT INTO sleuth.version VALUES ($1, $2)", &[&known, &OLDEST]).await?;
    }
    Ok(change.commit().await?)
}
