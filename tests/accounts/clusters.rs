//! A key for some clusters sees and does nothing where the account looks at others.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{sessions::said, world::World};

#[tokio::test]
async fn a_key_for_other_clusters_sees_and_does_nothing() {
    let world = World::start().await;
    let key = json!({ "account": "acme", "name": "far", "clusters": ["elsewhere"] });
    let far = world.admin(Method::POST, "/api/admin/keys", &key).await.1;
    let far = far["secret"].as_str().unwrap();
    let headers = [("Idempotency-Key", "once")];
    let question = json!({ "ask": "what FAKE_LLM{}" });
    let asks = async |key: &str| {
        world.send(Method::POST, "/api/chat", key, &question, &headers).await.status().as_u16()
    };
    assert_eq!(asks(&world.victim).await, 200);
    let listed = async |key: &str| {
        let listed: Value = world.get("/api/runs", key).await.json().await.unwrap();
        listed["runs"].as_array().unwrap().clone()
    };
    let run = listed(&world.victim).await[0]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(listed(&world.limited).await.len(), 1, "it looks at that one's cluster");
    assert_eq!(listed(far).await, Vec::<Value>::new());
    assert_eq!(asks(&world.limited).await, 200);
    assert_eq!(asks(far).await, 409, "its key is another's");

    let made = world.send(Method::POST, "/v1/sessions", &world.victim, &json!({}), &[]).await;
    let made: Value = made.json().await.unwrap();
    let session = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
    let at = |rest: &str| format!("{session}{rest}");
    let say = said("what FAKE_LLM{}");
    assert!(world.send(Method::POST, &at("/messages"), &world.victim, &say, &[]).await.status().is_success());
    let cancel = json!({});
    for (method, path, body) in [
        (Method::GET, format!("/api/runs/{run}"), &Value::Null),
        (Method::GET, format!("/api/runs/{run}/events"), &Value::Null),
        (Method::POST, format!("/api/runs/{run}/cancel"), &cancel),
        (Method::GET, at(""), &Value::Null),
        (Method::GET, at("/messages"), &Value::Null),
        (Method::GET, at("/events"), &Value::Null),
        (Method::GET, at("/sse"), &Value::Null),
        (Method::POST, at("/cancel"), &cancel),
        (Method::POST, at("/messages"), &say),
        (Method::PATCH, at(""), &json!({ "title": "mine" })),
        (Method::DELETE, at(""), &Value::Null),
    ] {
        let status = world.send(method.clone(), &path, far, body, &[]).await.status().as_u16();
        assert_eq!(status, 403, "{method} {path}");
    }
    let sessions: Value = world.get("/v1/sessions", far).await.json().await.unwrap();
    assert_eq!(sessions["data"], json!([]), "{sessions}");
    assert_eq!(world.status(&session, &world.victim).await, 200);

    let again = async |key: &str| {
        world.send(Method::POST, "/api/holmes/acme/chat", key, &question, &headers).await.status().as_u16()
    };
    assert_eq!([again(&world.victim).await, again(&world.limited).await, again(far).await], [200, 200, 403]);
}
