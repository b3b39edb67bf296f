//! Streams that go on where they broke, and requests that come twice.

use gateway::Config;
use serde_json::json;

use crate::{
    agent::Act,
    conversation::with_tools,
    world::{World, json as reply},
};

const BODY: &str = r#"{"ask": "x", "stream": true}"#;

/// The stream, without the one thing in it that is the request's and not the run's.
async fn text(request: reqwest::RequestBuilder) -> String {
    let stream = request.send().await.unwrap().text().await.unwrap();
    match stream.split_once("\"request_id\":\"") {
        Some((before, rest)) => format!("{before}{}", rest.split_once('"').unwrap().1),
        None => stream,
    }
}

/// The id of each frame.
fn ids(stream: &str) -> Vec<String> {
    stream.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_stream_goes_on_after_any_of_its_frames_on_every_way() {
    let world = World::new(Config::default(), Act::Play(with_tools())).await;
    let whole = text(world.ask(BODY)).await;
    let ids = ids(&whole);
    assert!(ids.len() > 5);
    for id in &ids {
        let rest = &whole[whole.find(&format!("id: {id}\n")).unwrap()..];
        let rest = &rest[rest.find("\n\n").unwrap() + 2..];
        let after = id.strip_prefix("run-1:").unwrap();
        assert_eq!(text(world.ask(BODY).header("last-event-id", id)).await, rest, "POST after {id}");
        let get = || world.get("/api/runs/run-1/events");
        assert_eq!(text(get().header("last-event-id", id)).await, rest, "GET after {id}");
        assert_eq!(
            text(world.get(&format!("/api/runs/run-1/events?after={after}"))).await,
            rest,
            "GET with a query after {id}"
        );
    }
    assert_eq!(text(world.get("/api/runs/run-1/events")).await, whole);
    assert_eq!(world.agent.asked.lock().unwrap().len(), 1, "nothing was asked twice");
}

#[tokio::test]
async fn what_cannot_be_gone_on_with_is_refused() {
    let world = World::new(Config::default(), Act::Play(with_tools())).await;
    for (id, expected) in [("run-2:3", 404), ("nonsense", 400), ("run-1:x", 400)] {
        assert_eq!(reply(world.ask(BODY).header("last-event-id", id)).await.0, expected, "{id}");
    }
    let other = world.get("/api/runs/run-1/events").header("last-event-id", "run-2:1");
    assert_eq!(reply(other).await.0, 400);
    assert_eq!(reply(world.get("/api/runs/run-1/events?after=-1")).await.0, 400);
}

#[tokio::test]
async fn a_key_reaches_the_agent_with_the_route_and_the_digest_of_the_body() {
    let world = World::new(Config::default(), Act::Play(with_tools())).await;
    let body = json!({"ask": "x"}).to_string();
    assert_eq!(reply(world.ask(&body).header("idempotency-key", "k1")).await.0, 200);
    let asked = world.agent.question();
    assert_eq!(asked.idempotency_key, "/api/chat k1");
    assert_eq!(asked.request_digest, grants::sha256(&body));
    let long = "x".repeat(256);
    assert_eq!(reply(world.ask(&body).header("idempotency-key", long)).await.0, 400);
}
