//! Accounts and keys as administrators make, change and end them, and what holds for them.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn keys_end_and_rotate_while_the_server_runs() {
    let world = World::start().await;
    let made = world.operator(&["keys", "create", "--account", "acme", "--name", "ci"]).await;
    let (id, old) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    assert_eq!(world.status("/api/model", old).await, 200);
    let new = world.operator(&["keys", "rotate", id]).await;
    let new_key = new["secret"].as_str().unwrap();
    assert_eq!(
        (world.status("/api/model", old).await, world.status("/api/model", new_key).await),
        (200, 200)
    );
    world.operator(&["keys", "revoke", id]).await;
    assert_eq!(
        (world.status("/api/model", old).await, world.status("/api/model", new_key).await),
        (401, 200)
    );
    let listed = world.operator(&["keys", "list", "--account", "acme"]).await;
    assert!(!listed.to_string().contains(new_key), "a key is seen once");

    let admin = world.admin(Method::GET, "/api/admin/accounts", &Value::Null).await;
    assert_eq!(admin.0, 200);
    let off = json!({ "disabled": true });
    assert_eq!(world.admin(Method::PATCH, "/api/admin/accounts/acme", &off).await.0, 200);
    assert_eq!(world.status("/api/model", new_key).await, 401);
}

#[tokio::test]
async fn who_comes_too_often_is_told_when_to_come_back() {
    for (flag, of_account) in [("--key-rate", 200), ("--account-rate", 429)] {
        let world = World::with(&[flag, "3"]).await;
        for _ in 0..3 {
            assert_eq!(world.status("/api/model", &world.victim).await, 200);
        }
        let refused = world.get("/api/model", &world.victim).await;
        assert_eq!(refused.status(), 429);
        let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(world.status("/api/model", &world.reader).await, of_account, "{flag}");
        assert_eq!(world.status("/api/model", &world.intruders[0].key).await, 200, "{flag}");
    }
}

#[tokio::test]
async fn keys_and_accounts_have_a_number_of_runs_at_a_time() {
    for (flag, of_account) in [("--max-key-runs", 200), ("--max-account-runs", 429)] {
        let world = World::with(&[flag, "1"]).await;
        let hanging = json!({ "ask": r#"what FAKE_LLM{"hang": true}"#, "stream": true });
        let going_on = world.send(Method::POST, "/api/chat", &world.victim, &hanging, &[]).await;
        assert_eq!(going_on.status(), 200);
        let one_more = json!({ "ask": "what FAKE_LLM{}" });
        let ask = async |key: &str| world.send(Method::POST, "/api/chat", key, &one_more, &[]).await;
        let refused = ask(&world.victim).await;
        assert_eq!(refused.status(), 429);
        assert!(refused.headers().contains_key("retry-after"), "{:?}", refused.headers());
        assert_eq!(ask(&world.limited).await.status(), of_account, "{flag}");
        assert_eq!(ask(&world.intruders[0].key).await.status(), 200, "{flag}");
    }
}

#[tokio::test]
async fn an_administrator_makes_accounts_and_keys_over_http() {
    let world = World::start().await;
    let account = json!({ "id": "new", "name": "New", "default_model": "small", "daily_tokens": 9 });
    let (status, made) = world.admin(Method::POST, "/api/admin/accounts", &account).await;
    assert_eq!(
        (status, &made["id"], &made["default_model"]),
        (201, &json!("new"), &json!("small")),
        "{made}"
    );
    assert_eq!((&made["daily_tokens"], &made["daily_cost_usd"]), (&json!(9), &Value::Null), "{made}");
    let listed = world.admin(Method::GET, "/api/admin/accounts", &Value::Null).await.1;
    assert!(listed["accounts"].as_array().unwrap().contains(&made), "{listed}");

    let scopes = json!(["robusta_ai:read", "robusta_ai:write"]);
    let key = json!({
        "account": "new", "name": "ci", "scopes": scopes, "clusters": ["lab"], "expires_in": 3600,
    });
    let (status, made) = world.admin(Method::POST, "/api/admin/keys", &key).await;
    assert_eq!((status, &made["scopes"], &made["clusters"]), (201, &scopes, &json!(["lab"])), "{made}");
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let listed = async || {
        let (status, keys) = world.admin(Method::GET, "/api/admin/keys?account=new", &Value::Null).await;
        assert!(status == 200 && !keys.to_string().contains("secret"), "{keys}");
        let found = keys["keys"].as_array().unwrap().iter().find(|key| key["id"] == id);
        found.unwrap().clone()
    };
    let before = listed().await;
    assert!(before["expires_at"].is_string() && before["used_at"].is_null(), "{before}");
    assert_eq!(world.status("/api/model", secret).await, 200);
    assert!(listed().await["used_at"].is_string(), "its last use is known");
    let path = format!("/api/admin/keys/{id}/rotate");
    let (status, next) = world.admin(Method::POST, &path, &json!({ "overlap_seconds": 600 })).await;
    assert_eq!((status, &next["clusters"]), (200, &json!(["lab"])), "{next}");
    assert_eq!(world.admin(Method::DELETE, &format!("/api/admin/keys/{id}"), &Value::Null).await.0, 200);
    let next = next["secret"].as_str().unwrap();
    assert_eq!(
        (world.status("/api/model", secret).await, world.status("/api/model", next).await),
        (401, 200)
    );

    for (method, path, body, status) in [
        (Method::POST, "/api/admin/accounts", &account, 409),
        (Method::POST, "/api/admin/accounts", &json!({ "id": "a b" }), 400),
        (Method::POST, "/api/admin/accounts", &json!({ "id": "x", "colour": 1 }), 400),
        (Method::PATCH, "/api/admin/accounts/none", &json!({ "name": "x" }), 404),
        (Method::POST, "/api/admin/keys", &json!({ "account": "none" }), 404),
        (Method::POST, "/api/admin/keys", &json!({ "scopes": ["everything"] }), 400),
        (Method::POST, "/api/admin/keys", &json!({ "expires_in": 0 }), 400),
        (Method::POST, "/api/admin/keys", &json!({ "join": true }), 400),
        (Method::GET, "/api/admin/keys?account=none", &Value::Null, 404),
        (Method::DELETE, path.trim_end_matches("/rotate"), &Value::Null, 404),
    ] {
        let (seen, answer) = world.admin(method.clone(), path, body).await;
        assert_eq!(seen, status, "{method} {path} {body}: {answer}");
        for (key, refusal) in [(world.victim.as_str(), 403), (next, 403), ("", 401)] {
            let refused = world.send(method.clone(), path, key, body, &[]).await.status().as_u16();
            assert_eq!(refused, refusal, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_key_ends_at_its_time() {
    let world = World::start().await;
    let (_, made) = world.admin(Method::POST, "/api/admin/keys", &json!({ "expires_in": 2 })).await;
    let key = made["secret"].as_str().unwrap();
    let ended = async {
        while world.status("/api/model", key).await != 401 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), ended).await.unwrap();
}

#[tokio::test]
async fn an_account_has_a_model_of_its_own() {
    let world = World::start().await;
    world.operator(&["accounts", "update", "acme", "--default-model", "small"]).await;
    let ask = async |account: &str, key: &str, body: Value| {
        assert_eq!(world.robusta(account, key, &body).await.0, 200);
        world.openai.requests().last().unwrap().body["model"].clone()
    };
    let asked = || json!({ "ask": "what FAKE_LLM{}" });
    let rival = &world.intruders[0].key;
    assert_eq!(ask("acme", &world.victim, asked()).await, "gpt-4.1-mini");
    assert_eq!(ask("rival", rival, asked()).await, "gpt-4.1");
    let named = json!({ "ask": "what FAKE_LLM{}", "model": "gpt" });
    assert_eq!(ask("acme", &world.victim, named).await, "gpt-4.1", "what is named counts");
}
