//! Accounts, keys and what was done with them, for whoever administers the server.
//!
//! * this file: the routes; `auth` has seen that they may be used
//! * `entry`: one line of the audit trail

mod entry;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::{
        Path, Query, Request, State,
        rejection::{PathRejection, QueryRejection},
    },
    response::{IntoResponse, Response},
    routing::{delete, get, patch, post},
};
use futures_util::StreamExt as _;
use http::{StatusCode, header};
use runtime::scope::Scope;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use wire::account::{
    Account, AuditRequest, CreateAccountRequest, CreateKeyRequest, Key, KeyKind, ListAccountsRequest,
    ListKeysRequest, RevokeKeyRequest, RotateKeyRequest, UpdateAccountRequest,
};

use crate::{
    asker::Asker,
    body,
    problem::Problem,
    state::Shared,
    upstream::{DEADLINE, request, within},
};

type Answer<T> = Result<Json<T>, Problem>;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/admin/accounts", get(accounts).post(create_account))
        .route("/api/admin/accounts/{id}", patch(update_account))
        .route("/api/admin/keys", get(keys).post(create_key))
        .route("/api/admin/keys/{id}", delete(revoke_key))
        .route("/api/admin/keys/{id}/rotate", post(rotate_key))
        .route("/api/admin/audit", get(audit))
}

#[derive(Serialize)]
struct AccountJson {
    id: String,
    name: String,
    default_model: String,
    created_at: Option<String>,
    disabled_at: Option<String>,
    daily_tokens: Option<u64>,
    daily_cost_usd: Option<f64>,
    tokens_today: u64,
    cost_usd_today: f64,
}

impl From<Account> for AccountJson {
    fn from(account: Account) -> Self {
        Self {
            id: account.id,
            name: account.name,
            default_model: account.default_model,
            created_at: account.created_at.map(|at| at.to_string()),
            disabled_at: account.disabled_at.map(|at| at.to_string()),
            daily_tokens: account.daily_tokens,
            daily_cost_usd: account.daily_cost_usd,
            tokens_today: account.tokens_today,
            cost_usd_today: account.cost_usd_today,
        }
    }
}

#[derive(Serialize)]
struct KeyJson {
    id: String,
    account: String,
    kind: &'static str,
    name: String,
    scopes: Vec<String>,
    clusters: Vec<String>,
    created_at: Option<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    used_at: Option<String>,
    /// The key's text, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl KeyJson {
    fn new(key: Key, secret: Option<String>) -> Self {
        let kind = match key.kind() {
            KeyKind::Unspecified | KeyKind::Client => "client",
            KeyKind::Join => "join",
            KeyKind::Cluster => "cluster",
        };
        Self {
            kind,
            id: key.id,
            account: key.account,
            name: key.name,
            scopes: key.scopes,
            clusters: key.clusters,
            created_at: key.created_at.map(|at| at.to_string()),
            expires_at: key.expires_at.map(|at| at.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
            used_at: key.used_at.map(|at| at.to_string()),
            secret,
        }
    }
}

#[derive(Serialize)]
struct Accounts {
    accounts: Vec<AccountJson>,
}

#[derive(Serialize)]
struct Keys {
    keys: Vec<KeyJson>,
}

#[derive(Serialize)]
struct Revoked {
    revoked: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NewAccount {
    id: String,
    name: String,
    default_model: String,
    daily_tokens: Option<u64>,
    daily_cost_usd: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AccountChange {
    name: Option<String>,
    default_model: Option<String>,
    disabled: Option<bool>,
    /// Zero takes a ceiling away.
    daily_tokens: Option<u64>,
    daily_cost_usd: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NewKey {
    account: String,
    name: String,
    scopes: Vec<String>,
    clusters: Vec<String>,
    /// Seconds after which it ends.
    expires_in: Option<u64>,
    /// Whether it lets its cluster join, instead of a client ask.
    join: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rotation {
    overlap_seconds: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Which {
    account: String,
    runs: u32,
    run_id: String,
    before: String,
    principal: String,
    cluster: String,
    /// Names, separated by commas.
    kinds: String,
    since: Option<String>,
    until: Option<String>,
}

/// `GET /api/admin/accounts`.
async fn accounts(State(shared): State<Arc<Shared>>) -> Answer<Accounts> {
    let mut client = shared.upstream.accounts();
    let listed = within(client.list_accounts(request(ListAccountsRequest {}, DEADLINE))).await?.into_inner();
    Ok(Json(Accounts { accounts: listed.accounts.into_iter().map(Into::into).collect() }))
}

/// `POST /api/admin/accounts`.
async fn create_account(
    State(shared): State<Arc<Shared>>,
    asked: Request,
) -> Result<impl IntoResponse, Problem> {
    let NewAccount { id, name, default_model, daily_tokens, daily_cost_usd } = read(asked, &shared).await?;
    let new = CreateAccountRequest { id, name, default_model, daily_tokens, daily_cost_usd };
    let made = within(shared.upstream.accounts().create_account(request(new, DEADLINE))).await?;
    let account = AccountJson::from(made.into_inner().account.unwrap_or_default());
    Ok((StatusCode::CREATED, Json(account)))
}

/// `PATCH /api/admin/accounts/{id}`: what is not named stays.
async fn update_account(
    State(shared): State<Arc<Shared>>,
    id: Result<Path<String>, PathRejection>,
    asked: Request,
) -> Answer<AccountJson> {
    let id = segment(id)?;
    let AccountChange { name, default_model, disabled, daily_tokens, daily_cost_usd } =
        read(asked, &shared).await?;
    let change = UpdateAccountRequest { id, name, default_model, disabled, daily_tokens, daily_cost_usd };
    let changed = within(shared.upstream.accounts().update_account(request(change, DEADLINE))).await?;
    Ok(Json(changed.into_inner().account.unwrap_or_default().into()))
}

/// `GET /api/admin/keys?account=ID`.
async fn keys(
    State(shared): State<Arc<Shared>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Answer<Keys> {
    let account = query(which)?.account;
    let mut client = shared.upstream.accounts();
    let listed = within(client.list_keys(request(ListKeysRequest { account }, DEADLINE))).await?.into_inner();
    Ok(Json(Keys { keys: listed.keys.into_iter().map(|key| KeyJson::new(key, None)).collect() }))
}

/// `POST /api/admin/keys`: the answer has the key's text, and nothing else ever has.
async fn create_key(State(shared): State<Arc<Shared>>, asked: Request) -> Result<impl IntoResponse, Problem> {
    let NewKey { account, name, scopes, clusters, expires_in, join } = read(asked, &shared).await?;
    let kind = if join { KeyKind::Join } else { KeyKind::Client };
    let expires_at =
        match expires_in.map(|seconds| SystemTime::now().checked_add(Duration::from_secs(seconds))) {
            Some(None) => {
                return Err(Problem::new(StatusCode::BAD_REQUEST, "expires_in: it is too large"));
            }
            Some(at) => at,
            None => None,
        };
    let new = CreateKeyRequest {
        account,
        kind: kind.into(),
        name,
        scopes,
        clusters,
        expires_at: expires_at.map(Into::into),
    };
    let made = within(shared.upstream.accounts().create_key(request(new, DEADLINE))).await?.into_inner();
    Ok((StatusCode::CREATED, Json(KeyJson::new(made.key.unwrap_or_default(), Some(made.secret)))))
}

/// `DELETE /api/admin/keys/{id}`.
async fn revoke_key(
    State(shared): State<Arc<Shared>>,
    id: Result<Path<String>, PathRejection>,
) -> Answer<Revoked> {
    let revoked = segment(id)?;
    let ended = RevokeKeyRequest { id: revoked.clone() };
    within(shared.upstream.accounts().revoke_key(request(ended, DEADLINE))).await?;
    Ok(Json(Revoked { revoked }))
}

/// `POST /api/admin/keys/{id}/rotate`: the answer is the successor.
async fn rotate_key(
    State(shared): State<Arc<Shared>>,
    id: Result<Path<String>, PathRejection>,
    asked: Request,
) -> Answer<KeyJson> {
    let id = segment(id)?;
    let Rotation { overlap_seconds } = read(asked, &shared).await?;
    let old = RotateKeyRequest { id, overlap_seconds };
    let made = within(shared.upstream.accounts().rotate_key(request(old, DEADLINE))).await?.into_inner();
    Ok(Json(KeyJson::new(made.key.unwrap_or_default(), Some(made.secret))))
}

/// `GET /api/admin/audit?account=ID&runs=N&before=ID&run_id=ID&principal=ID&cluster=NAME&kinds=A,B&since=TIME&until=TIME`:
/// one JSON object a line, as they are read from the logs. Only an administrator sees other accounts than their own.
async fn audit(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Extension<Asker>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Response, Problem> {
    let Which { account, runs, run_id, before, principal, cluster, kinds, since, until } = query(which)?;
    let before_run_id = before;
    let kinds = kinds.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
    let (since, until) = (time(since)?, time(until)?);
    let may_choose = asker.scopes.allow(Scope::Admin) && !account.is_empty();
    let account = if may_choose { account } else { asker.caller.account };
    let asked =
        AuditRequest { account, runs, run_id, before_run_id, principal, cluster, kinds, since, until };
    let trail = request(asked, shared.config.answer_deadline);
    let entries = within(shared.upstream.accounts().audit(trail)).await?.into_inner();
    let lines = entries.map(|entry| entry.map(|entry| entry::line(&entry)));
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

/// A body, which may be missing where nothing in it is needed.
async fn read<T: DeserializeOwned + Default>(asked: Request, shared: &Shared) -> Result<T, Problem> {
    let body = body::read_json(asked, shared).await?;
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(&body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("The body cannot be read: {error}")))
}

fn time(text: Option<String>) -> Result<Option<prost_types::Timestamp>, Problem> {
    let bad = |_| Problem::new(StatusCode::BAD_REQUEST, "since, until: write a time as 2030-01-31T12:00:00Z");
    text.map(|text| text.parse().map_err(bad)).transpose()
}

fn query(which: Result<Query<Which>, QueryRejection>) -> Result<Which, Problem> {
    let Query(which) = which.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    Ok(which)
}

/// What is not even text is the id of nothing.
fn segment(id: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    id.map(|Path(id)| id).map_err(|_| Problem::new(StatusCode::NOT_FOUND, "Not Found"))
}
