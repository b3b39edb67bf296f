//! Accounts.

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Object};
use domain::Timestamp;
use tokio_postgres::{Row, types::ToSql};

use super::{Postgres, failure::Failure};
use crate::{
    Account, Accounts, Budget, Credential, Error, Spent,
    accounts::{joined, split},
    budget::day,
    catalog::now,
    sql,
};

/// Takes the day as `$1`.
const ACCOUNT: &str =
    "SELECT id, name, default_model, created, disabled, daily_tokens, daily_cost, tokens, cost
    FROM sleuth.accounts, LATERAL (
        SELECT coalesce(sum(tokens), 0)::int8 AS tokens, coalesce(sum(cost), 0)::float8 AS cost
        FROM sleuth.spending WHERE account = id AND day >= $1
    ) spent";
const CREDENTIAL: &str =
    "SELECT id, account, kind, digest, name, scopes, clusters, created, expires, revoked, used
                          FROM sleuth.credentials";

#[async_trait]
impl Accounts for Postgres {
    async fn add_account(&self, account: Account) -> Result<bool, Error> {
        account.check()?;
        let account = &account;
        let add = |client: Object, again: bool| async move {
            let added = set(
                &client,
                "INSERT INTO sleuth.accounts (id, name, default_model, created, disabled, daily_tokens, daily_cost)
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
                account,
            );
            // What was tried before may be what is in the way.
            Ok(added.await? || (again && find(&client, &account.id).await?.as_ref() == Some(account)))
        };
        self.database.run(add).await
    }

    async fn change_account(&self, account: Account) -> Result<bool, Error> {
        account.check()?;
        let account = &account;
        let change = |client: Object, _| async move {
            set(
                &client,
                "UPDATE sleuth.accounts SET name = $2, default_model = $3, created = $4, disabled = $5,
                     daily_tokens = $6, daily_cost = $7
                 WHERE id = $1",
                account,
            )
            .await
        };
        self.database.run(change).await
    }

    async fn account(&self, id: &str) -> Result<Option<Account>, Error> {
        self.database.run(|client: Object, _| async move { find(&client, id).await }).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, Error> {
        let list = |client: Object, _| async move {
            let select = client.prepare_cached(&format!("{ACCOUNT} ORDER BY id COLLATE \"C\"")).await?;
            client.query(&select, &[&day(now())]).await?.iter().map(account).collect()
        };
        self.database.run(list).await
    }

    async fn spend(&self, account: &str, spent: Spent) -> Result<(), Error> {
        let spend = |client: Object, _| async move {
            let insert = client.prepare_cached(&spending("VALUES ($1, $2, $3, $4, $5)")).await?;
            let (tokens, cost) = (sql::int(spent.tokens), spent.cost_usd);
            client.execute(&insert, &[&account, &self.part, &day(now()), &tokens, &cost]).await?;
            Ok(())
        };
        self.database.run(spend).await
    }

    async fn add_credential(&self, credential: Credential) -> Result<bool, Error> {
        credential.check()?;
        let new = &credential;
        self.database.run(|client: Object, _| async move { add(&client, new).await }).await
    }

    async fn credential(&self, id: &str) -> Result<Option<Credential>, Error> {
        let find = |client: Object, _| async move {
            let select = client.prepare_cached(&format!("{CREDENTIAL} WHERE id = $1")).await?;
            client.query_opt(&select, &[&id]).await?.as_ref().map(credential_of).transpose()
        };
        self.database.run(find).await
    }

    async fn credentials(&self, account: &str) -> Result<Vec<Credential>, Error> {
        let list = |client: Object, _| async move {
            let select =
                client.prepare_cached(&format!("{CREDENTIAL} WHERE account = $1 ORDER BY number")).await?;
            client.query(&select, &[&account]).await?.iter().map(credential_of).collect()
        };
        self.database.run(list).await
    }

    async fn end_credential(&self, id: &str, now: Timestamp, end: Timestamp) -> Result<bool, Error> {
        let end_it = |client: Object, again: bool| async move {
            // What was tried before may have ended it.
            Ok(end_one(&client, id, now, end).await? || (again && ended_at(&client, id, end).await?))
        };
        self.database.run(end_it).await
    }

    async fn replace_credential(
        &self,
        old: &str,
        now: Timestamp,
        end: Timestamp,
        new: Credential,
    ) -> Result<bool, Error> {
        new.check()?;
        let new = &new;
        let replace = |mut client: Object, _| async move {
            let change = client.transaction().await?;
            if !end_one(&change, old, now, end).await? {
                // What was tried before may have done both.
                let select = change.prepare_cached("SELECT FROM sleuth.credentials WHERE id = $1").await?;
                return Ok(change.query_opt(&select, &[&new.id]).await?.is_some());
            }
            let added = add(&change, new).await?;
            if added {
                change.commit().await?;
            }
            Ok(added)
        };
        self.database.run(replace).await
    }

    async fn credential_used(&self, id: &str, at: Timestamp) -> Result<(), Error> {
        let note = |client: Object, _| async move {
            let update = client
                .prepare_cached("UPDATE sleuth.credentials SET used = greatest(used, $2) WHERE id = $1")
                .await?;
            client.execute(&update, &[&id, &at.0]).await?;
            Ok(())
        };
        self.database.run(note).await
    }
}

/// Counts rows of an account, a part, a day, tokens and costs.
pub(super) fn spending(rows: &str) -> String {
    format!(
        "INSERT INTO sleuth.spending AS s (account, part, day, tokens, cost) {rows}
         ON CONFLICT (account, part) DO UPDATE SET day = greatest(s.day, excluded.day),
             tokens = excluded.tokens + CASE WHEN s.day < excluded.day THEN 0 ELSE s.tokens END,
             cost = excluded.cost + CASE WHEN s.day < excluded.day THEN 0 ELSE s.cost END"
    )
}

async fn set(client: &Object, statement: &str, account: &Account) -> Result<bool, Failure> {
    let Account { id, name, default_model, created, disabled, budget, spent: _ } = account;
    let statement = client.prepare_cached(statement).await?;
    let (disabled, tokens) = (disabled.map(|at| at.0), budget.tokens.map(sql::int));
    let values: [&(dyn ToSql + Sync); 7] =
        [id, name, default_model, &created.0, &disabled, &tokens, &budget.cost_usd];
    Ok(client.execute(&statement, &values).await? > 0)
}

async fn find(client: &Object, id: &str) -> Result<Option<Account>, Failure> {
    let select = client.prepare_cached(&format!("{ACCOUNT} WHERE id = $2")).await?;
    client.query_opt(&select, &[&day(now()), &id]).await?.as_ref().map(account).transpose()
}

fn account(row: &Row) -> Result<Account, Failure> {
    Ok(Account {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        default_model: row.try_get(2)?,
        created: Timestamp(row.try_get(3)?),
        disabled: row.try_get::<_, Option<_>>(4)?.map(Timestamp),
        budget: Budget { tokens: row.try_get::<_, Option<_>>(5)?.map(sql::uint), cost_usd: row.try_get(6)? },
        spent: Spent { tokens: sql::uint(row.try_get(7)?), cost_usd: row.try_get(8)? },
    })
}

/// Ids are random: one that is there already was added by an earlier try.
async fn add(client: &impl GenericClient, new: &Credential) -> Result<bool, Failure> {
    let insert = client
        .prepare_cached(
            "INSERT INTO sleuth.credentials
             (id, account, kind, digest, name, scopes, clusters, created, expires, revoked, used)
             SELECT $1, id, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM sleuth.accounts WHERE id = $2
             ON CONFLICT (id) DO UPDATE SET id = excluded.id",
        )
        .await?;
    let time = |at: Option<Timestamp>| at.map(|at| at.0);
    let added = client
        .execute(
            &insert,
            &[
                &new.id,
                &new.account,
                &sql::of_credential(new.kind),
                &&new.digest[..],
                &new.name,
                &joined(&new.scopes),
                &joined(&new.clusters),
                &new.created.0,
                &time(new.expires),
                &time(new.revoked),
                &time(new.used),
            ],
        )
        .await?;
    Ok(added > 0)
}

async fn end_one(
    client: &impl GenericClient,
    id: &str,
    now: Timestamp,
    end: Timestamp,
) -> Result<bool, Failure> {
    let update = client
        .prepare_cached(
            "UPDATE sleuth.credentials SET revoked = least(revoked, $3)
             WHERE id = $1 AND (expires IS NULL OR expires > $2) AND (revoked IS NULL OR revoked > $2)",
        )
        .await?;
    Ok(client.execute(&update, &[&id, &now.0, &end.0]).await? > 0)
}

async fn ended_at(client: &Object, id: &str, end: Timestamp) -> Result<bool, Failure> {
    let select =
        client.prepare_cached("SELECT FROM sleuth.credentials WHERE id = $1 AND revoked = $2").await?;
    Ok(client.query_opt(&select, &[&id, &end.0]).await?.is_some())
}

fn credential_of(row: &Row) -> Result<Credential, Failure> {
    let time = |column: usize| row.try_get::<_, Option<_>>(column).map(|at| at.map(Timestamp));
    let kind = sql::credential(row.try_get(2)?)
        .ok_or_else(|| Error::Unavailable("a credential is of an unknown kind".to_owned()))?;
    let digest = row.try_get::<_, &[u8]>(3)?.try_into();
    Ok(Credential {
        id: row.try_get(0)?,
        account: row.try_get(1)?,
        kind,
        digest: digest.map_err(|_| Error::Unavailable("a credential is damaged".to_owned()))?,
        name: row.try_get(4)?,
        scopes: split(row.try_get(5)?),
        clusters: split(row.try_get(6)?),
        created: Timestamp(row.try_get(7)?),
        expires: time(8)?,
        revoked: time(9)?,
        used: time(10)?,
    })
}
