//! Accounts.

use async_trait::async_trait;
use domain::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Sqlite;
use crate::{
    Account, Accounts, Budget, Credential, Error, Spent,
    accounts::{joined, split},
    budget::day,
    catalog::now,
    sql,
};

/// Takes the day as `?1`.
const ACCOUNT: &str = "SELECT id, name, default_model, created, disabled, daily_tokens, daily_cost,
                           coalesce(tokens, 0), coalesce(cost, 0)
                       FROM accounts LEFT JOIN spending ON account = id AND day = ?1";
const CREDENTIAL: &str =
    "SELECT id, account, kind, digest, name, scopes, clusters, created, expires, revoked, used
                          FROM credentials";

#[async_trait]
impl Accounts for Sqlite {
    async fn add_account(&self, account: Account) -> Result<bool, Error> {
        account.check()?;
        let add = move |connection: &Connection| {
            let added = connection
                .prepare_cached(
                    "INSERT INTO accounts (id, name, default_model, created, disabled, daily_tokens, daily_cost)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
                )?
                .execute(values(&account))?;
            Ok(added > 0)
        };
        self.writer.write(add).await
    }

    async fn change_account(&self, account: Account) -> Result<bool, Error> {
        account.check()?;
        let change = move |connection: &Connection| {
            let changed = connection
                .prepare_cached(
                    "UPDATE accounts SET name = ?2, default_model = ?3, created = ?4, disabled = ?5,
                         daily_tokens = ?6, daily_cost = ?7
                     WHERE id = ?1",
                )?
                .execute(values(&account))?;
            Ok(changed > 0)
        };
        self.writer.write(change).await
    }

    async fn account(&self, id: &str) -> Result<Option<Account>, Error> {
        let id = id.to_owned();
        let find = move |connection: &Connection| {
            let mut select = connection.prepare_cached(&format!("{ACCOUNT} WHERE id = ?2"))?;
            Ok(select.query_row(params![day(now()), id], account).optional()?)
        };
        self.readers.read(find).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, Error> {
        let list = |connection: &Connection| {
            let mut select = connection.prepare_cached(&format!("{ACCOUNT} ORDER BY id"))?;
            Ok(select.query_map([day(now())], account)?.collect::<Result<_, _>>()?)
        };
        self.readers.read(list).await
    }

    async fn spend(&self, account: &str, spent: Spent) -> Result<(), Error> {
        let account = account.to_owned();
        self.writer.write(move |connection| spend(connection, &account, spent)).await
    }

    async fn add_credential(&self, credential: Credential) -> Result<bool, Error> {
        credential.check()?;
        self.writer.write(move |connection| add(connection, &credential)).await
    }

    async fn credential(&self, id: &str) -> Result<Option<Credential>, Error> {
        let id = id.to_owned();
        let find = move |connection: &Connection| {
            let mut select = connection.prepare_cached(&format!("{CREDENTIAL} WHERE id = ?1"))?;
            Ok(select.query_row([id], credential).optional()?)
        };
        self.readers.read(find).await
    }

    async fn credentials(&self, account: &str) -> Result<Vec<Credential>, Error> {
        let account = account.to_owned();
        let list = move |connection: &Connection| {
            let mut select =
                connection.prepare_cached(&format!("{CREDENTIAL} WHERE account = ?1 ORDER BY number"))?;
            Ok(select.query_map([account], credential)?.collect::<Result<_, _>>()?)
        };
        self.readers.read(list).await
    }

    async fn end_credential(&self, id: &str, now: Timestamp, end: Timestamp) -> Result<bool, Error> {
        let id = id.to_owned();
        self.writer.write(move |connection| end_one(connection, &id, now, end)).await
    }

    async fn replace_credential(
        &self,
        old: &str,
        now: Timestamp,
        end: Timestamp,
        new: Credential,
    ) -> Result<bool, Error> {
        new.check()?;
        let old = old.to_owned();
        let replace = move |connection: &Connection| {
            Ok(exists(connection, &new.account)?
                && end_one(connection, &old, now, end)?
                && add(connection, &new)?)
        };
        self.writer.write(replace).await
    }

    async fn credential_used(&self, id: &str, at: Timestamp) -> Result<(), Error> {
        let id = id.to_owned();
        let note = move |connection: &Connection| {
            connection
                .prepare_cached("UPDATE credentials SET used = ?2 WHERE id = ?1")?
                .execute(params![id, at.0])?;
            Ok(())
        };
        self.writer.write(note).await
    }
}

fn values(account: &Account) -> impl rusqlite::Params {
    let Account { id, name, default_model, created, disabled, budget, spent: _ } = account.clone();
    let tokens = budget.tokens.map(sql::int);
    (id, name, default_model, created.0, disabled.map(|at| at.0), tokens, budget.cost_usd)
}

fn account(row: &Row<'_>) -> rusqlite::Result<Account> {
    Ok(Account {
        id: row.get(0)?,
        name: row.get(1)?,
        default_model: row.get(2)?,
        created: Timestamp(row.get(3)?),
        disabled: row.get::<_, Option<_>>(4)?.map(Timestamp),
        budget: Budget { tokens: row.get::<_, Option<_>>(5)?.map(sql::uint), cost_usd: row.get(6)? },
        spent: Spent { tokens: sql::uint(row.get(7)?), cost_usd: row.get(8)? },
    })
}

/// Counts what an account has spent.
pub(super) fn spend(connection: &Connection, account: &str, spent: Spent) -> Result<(), Error> {
    if !spent.is_nothing() {
        connection
            .prepare_cached(
                "INSERT INTO spending (account, day, tokens, cost) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (account) DO UPDATE SET day = excluded.day,
                     tokens = excluded.tokens + iif(day = excluded.day, tokens, 0),
                     cost = excluded.cost + iif(day = excluded.day, cost, 0)",
            )?
            .execute(params![account, day(now()), sql::int(spent.tokens), spent.cost_usd])?;
    }
    Ok(())
}

fn exists(connection: &Connection, account: &str) -> Result<bool, Error> {
    Ok(connection.prepare_cached("SELECT 1 FROM accounts WHERE id = ?1")?.exists([account])?)
}

fn add(connection: &Connection, new: &Credential) -> Result<bool, Error> {
    if !exists(connection, &new.account)? {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT INTO credentials
             (id, account, kind, digest, name, scopes, clusters, created, expires, revoked, used)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            new.id,
            new.account,
            sql::of_credential(new.kind),
            new.digest,
            new.name,
            joined(&new.scopes),
            joined(&new.clusters),
            new.created.0,
            new.expires.map(|at| at.0),
            new.revoked.map(|at| at.0),
            new.used.map(|at| at.0),
        ])?;
    Ok(true)
}

fn end_one(connection: &Connection, id: &str, now: Timestamp, end: Timestamp) -> Result<bool, Error> {
    let ended = connection
        .prepare_cached(
            "UPDATE credentials SET revoked = min(?3, coalesce(revoked, ?3))
             WHERE id = ?1 AND (expires IS NULL OR expires > ?2) AND (revoked IS NULL OR revoked > ?2)",
        )?
        .execute(params![id, now.0, end.0])?;
    Ok(ended > 0)
}

fn credential(row: &Row<'_>) -> rusqlite::Result<Credential> {
    let time = |column| row.get::<_, Option<_>>(column).map(|at| at.map(Timestamp));
    let code: i16 = row.get(2)?;
    let kind = sql::credential(code).ok_or(rusqlite::Error::IntegralValueOutOfRange(2, code.into()))?;
    Ok(Credential {
        id: row.get(0)?,
        account: row.get(1)?,
        kind,
        digest: row.get(3)?,
        name: row.get(4)?,
        scopes: split(&row.get::<_, String>(5)?),
        clusters: split(&row.get::<_, String>(6)?),
        created: Timestamp(row.get(7)?),
        expires: time(8)?,
        revoked: time(9)?,
        used: time(10)?,
    })
}
