//! `sleuth keys`.

use runtime::clock;
use wire::account::{CreateKeyRequest, Key, KeyKind, ListKeysRequest, RevokeKeyRequest, RotateKeyRequest};

use super::Context;
use crate::{
    cli::{Keys, KeysCommand},
    services,
    terminal::{Table, print_json, print_line, print_table},
};

const DAY: i64 = 24 * 3600;

pub(super) async fn run(context: Context, flags: Keys) -> anyhow::Result<()> {
    let mut client = services::accounts(&context.file, &flags.at).await?;
    let json = flags.at.json;
    match flags.command.unwrap_or(KeysCommand::List) {
        KeysCommand::List => {
            let keys = client.list_keys(ListKeysRequest { account: flags.account }).await?.into_inner().keys;
            if json {
                return print_json(&keys.iter().map(as_json).collect::<Vec<_>>());
            }
            list(&keys)
        }
        KeysCommand::Create { name, scopes, clusters, expires_days, join } => {
            let kind = if join { KeyKind::Join } else { KeyKind::Client };
            let expires_at = expires_days.map(|days| prost_time(now() + i64::from(days) * DAY));
            let account = flags.account;
            let request = CreateKeyRequest { account, kind: kind.into(), name, scopes, clusters, expires_at };
            let made = client.create_key(request).await?.into_inner();
            shown_once(made.key, &made.secret, json)
        }
        KeysCommand::Revoke { id } => {
            client.revoke_key(RevokeKeyRequest { id: id.clone() }).await?;
            if json {
                print_json(&serde_json::json!({ "revoked": id }))
            } else {
                print_line(&format!("{id} is revoked"))
            }
        }
        KeysCommand::Rotate { id, overlap_hours } => {
            let overlap_seconds = Some(u32::from(overlap_hours) * 3600);
            let made = client.rotate_key(RotateKeyRequest { id, overlap_seconds }).await?.into_inner();
            shown_once(made.key, &made.secret, json)
        }
    }
}

/// Prints the text of a new key, alone on its line, for scripts.
fn shown_once(key: Option<Key>, secret: &str, json: bool) -> anyhow::Result<()> {
    if !json {
        return print_line(secret);
    }
    let mut key = as_json(&key.unwrap_or_default());
    key["secret"] = secret.into();
    print_json(&key)
}

fn list(keys: &[Key]) -> anyhow::Result<()> {
    let now = now();
    let mut table = Table::new(["KEY", "NAME", "SCOPES", "CLUSTERS", "LAST USED", ""]);
    for key in keys {
        let over = |at: Option<&prost_types::Timestamp>| at.is_some_and(|at| at.seconds <= now);
        let state = match (over(key.revoked_at.as_ref()), over(key.expires_at.as_ref())) {
            (true, _) => "revoked",
            (false, true) => "expired",
            (false, false) => "",
        };
        let scopes = match key.kind() {
            KeyKind::Unspecified | KeyKind::Client => key.scopes.join(" "),
            KeyKind::Join => "(to join)".to_owned(),
            KeyKind::Cluster => "(cluster)".to_owned(),
        };
        table.row([
            key.id.clone(),
            key.name.clone(),
            scopes,
            key.clusters.join(" "),
            key.used_at.map(|at| at.to_string()).unwrap_or_default(),
            state.to_owned(),
        ]);
    }
    print_table(&table)
}

fn as_json(key: &Key) -> serde_json::Value {
    let time = |at: Option<prost_types::Timestamp>| at.map(|at| at.to_string());
    serde_json::json!({
        "id": key.id, "account": key.account, "kind": kind(key.kind()), "name": key.name,
        "scopes": key.scopes, "clusters": key.clusters, "created_at": time(key.created_at),
        "expires_at": time(key.expires_at), "revoked_at": time(key.revoked_at), "used_at": time(key.used_at),
    })
}

fn kind(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Unspecified | KeyKind::Client => "client",
        KeyKind::Join => "join",
        KeyKind::Cluster => "cluster",
    }
}

fn now() -> i64 {
    clock::unix_nanos() / 1_000_000_000
}

fn prost_time(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 0 }
}
