//! Whoever deletes a session deletes what was said in it, and not who asked what and what was done.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    sessions::{happens, made, say},
    world::World,
};

#[tokio::test]
async fn the_trail_of_a_session_outlives_it() {
    let world = World::start().await;
    let session = made(&world).await;
    say(&world, &world.victim, &session, r#"what FAKE_LLM{"rounds": 1}"#).await;
    happens(&world, &session, "turn.completed").await;
    let before = world.audit("acme").await;
    let first = before[0]["run_id"].as_str().unwrap().to_owned();
    let of_session = world.audit_by_command(&["--account", "acme", "--run", &session]).await;
    assert_eq!(of_session.len(), before.len());
    say(&world, &world.victim, &session, r#"why FAKE_LLM{"hang": true}"#).await;
    assert!(world.openai.until_in_flight(1, Duration::from_secs(90)).await);

    let path = format!("/v1/sessions/{session}");
    let deleted = world.send(Method::DELETE, &path, &world.victim, &Value::Null, &[]).await;
    assert_eq!(deleted.status(), 204);
    for gone in [&path, &format!("/api/runs/trail_{first}"), &format!("/api/runs/trail_{first}/events")] {
        assert_eq!(world.status(gone, &world.victim).await, 404, "{gone}");
    }
    let listed: Value = world.get("/api/runs", &world.victim).await.json().await.unwrap();
    assert_eq!(listed["runs"], json!([]));

    let of_first = world.audit(&format!("acme&run_id={first}")).await;
    assert_eq!(of_first, before);
    let after = world.audit("acme").await;
    let (of_second, kept): (Vec<_>, Vec<_>) =
        after.iter().cloned().partition(|entry| entry["run_id"] != first);
    assert_eq!(kept, before);
    let kinds: Vec<_> = of_second.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["asked", "closed"]);
    assert_eq!(of_second[1]["outcome"], "cancelled");
    let began =
        world.audit_by_command(&["--account", "acme", "--kind", "began", "--by", &world.victim_id]).await;
    assert_eq!(began.len(), 1, "{began:?}");
    assert!(world.audit("rival").await.is_empty());
    assert_eq!(world.get_as_admin(&format!("/api/admin/audit?account=rival&run_id={first}")).await, 404);
}
