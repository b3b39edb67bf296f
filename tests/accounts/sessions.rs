//! Every way to a session, and to a call that waits in a chat of agents that work on files.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

/// A way to something, in whose place `{id}` stands.
type Way = (Method, &'static str, Value);

/// The ways to a session.
pub(crate) fn sessions() -> Vec<Way> {
    let ways = [
        (Method::GET, "/v1/sessions/{id}", Value::Null),
        (Method::PATCH, "/v1/sessions/{id}", json!({ "title": "mine" })),
        (Method::DELETE, "/v1/sessions/{id}", Value::Null),
        (Method::GET, "/v1/sessions/{id}/messages", Value::Null),
        (Method::POST, "/v1/sessions/{id}/messages", said("hello")),
        (Method::GET, "/v1/sessions/{id}/events", Value::Null),
        (Method::GET, "/v1/sessions/{id}/sse?after_sequence=0", Value::Null),
        (Method::POST, "/v1/sessions/{id}/cancel", json!({})),
        (Method::POST, "/v1/sessions/{id}/tool-results", json!({ "tool_results": [] })),
        (Method::POST, "/v1/sessions/{id}/tool-approvals", decision("call")),
    ];
    let other = ways.clone().map(|(method, path, body)| (method, leaked(path), body));
    ways.into_iter().chain(other).collect()
}

/// The same path where other clients look for it.
fn leaked(path: &str) -> &'static str {
    Box::leak(format!("/api{path}").into_boxed_str())
}

pub(crate) fn said(text: &str) -> Value {
    json!({ "message": { "role": "user", "content": [{ "type": "text", "text": text }] } })
}

fn decision(call: &str) -> Value {
    json!({ "decisions": [{ "tool_call_id": call, "decision": "allow" }] })
}

/// The status and the body of an attempt, with nothing of what was tried in it.
pub(crate) async fn attempt(world: &World, (method, path, body): &Way, key: &str, id: &str) -> (u16, String) {
    let response = world.send(method.clone(), &path.replace("{id}", id), key, body, &[]).await;
    let status = response.status().as_u16();
    // What succeeds may be a stream without end.
    let body = if status < 400 { String::new() } else { response.text().await.unwrap() };
    (status, body.replace(id, "ID"))
}

/// A new session of `acme`.
pub(crate) async fn made(world: &World) -> String {
    let made = world.send(Method::POST, "/v1/sessions", &world.victim, &json!({}), &[]).await;
    let made: Value = made.json().await.unwrap();
    made["id"].as_str().unwrap().to_owned()
}

/// Says something to a session.
pub(crate) async fn say(world: &World, key: &str, session: &str, text: &str) {
    let path = format!("/v1/sessions/{session}/messages");
    let taken = world.send(Method::POST, &path, key, &said(text), &[]).await;
    assert!(taken.status().is_success(), "{taken:?}");
}

/// The first event of a kind in a session, once there is one.
pub(crate) async fn happens(world: &World, session: &str, kind: &str) -> Value {
    let path = format!("/v1/sessions/{session}/events?types={kind}");
    let found = async {
        loop {
            let events: Value = world.get(&path, &world.victim).await.json().await.unwrap();
            match events["data"].get(0) {
                Some(event) => return event.clone(),
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(90), found).await.unwrap()
}
