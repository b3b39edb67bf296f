//! Routes that are no dialect, and everything that is no route.

use std::sync::Arc;

use gateway::{Config, MetricsText};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::{sync::Barrier, time::timeout};

use crate::{
    agent::{Act, Stage},
    conversation::plain,
    world::{DEADLINE, World, header, json as reply},
};

async fn world() -> World {
    World::new(Config { body_limit: 1000, ..Config::default() }, Act::Play(plain())).await
}

#[tokio::test]
async fn every_error_is_json() {
    let world = world().await;
    let chat = |media| world.request(Method::POST, "/api/chat").header("content-type", media).body("{}");
    for (request, status, detail) in [
        (world.get("/api/nope"), 404, "Not Found"),
        (world.get("/api/chat/"), 404, "Not Found"),
        (world.get("/api/chat"), 405, "Method Not Allowed"),
        (world.request(Method::DELETE, "/api/model"), 405, "Method Not Allowed"),
        (world.request(Method::OPTIONS, "/api/chat"), 405, "Method Not Allowed"),
        (chat("text/plain"), 415, "The content type must be application/json"),
        (world.ask(&"x".repeat(1001)), 413, "The body is larger than 1000 bytes"),
        (world.get("/api/runs?limit=x"), 422, "`limit` must be a whole number"),
        (world.get("/api/runs/other"), 404, "no run other"),
        (world.get("/api/runs/%ff"), 404, "Not Found"),
    ] {
        assert_eq!(reply(request).await, (status, json!({"detail": detail})));
    }
}

#[tokio::test]
async fn what_is_no_route_of_sessions_is_a_problem_of_theirs() {
    let world = world().await;
    for (method, path, status, allowed) in [
        (Method::GET, "/v1/nope", 404, None),
        (Method::GET, "/api/v1/sessions/x/nope", 404, None),
        (Method::PUT, "/v1/sessions", 405, Some("GET,HEAD,POST")),
        (Method::DELETE, "/api/v1/models", 405, Some("GET,HEAD")),
    ] {
        let response = world.request(method, path).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
        assert_eq!(header(&response, "allow"), allowed);
        let problem: serde_json::Value = response.json().await.unwrap();
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
    }
    let robusta = world.get("/api/holmes/a/b/c");
    assert_eq!(reply(robusta).await, (404, json!({"msg": "Not Found"})));
}

#[tokio::test]
async fn what_harness_clients_are_refused_before_a_handler_is_an_error_of_theirs() {
    let world = world().await;
    for (request, status, error) in [
        (world.get("/chat"), 405, "Method Not Allowed"),
        (world.request(Method::DELETE, "/models"), 405, "Method Not Allowed"),
        (world.get("/chat/nope"), 404, "Not Found"),
        (world.get("/chat/relay/x"), 405, "Method Not Allowed"),
    ] {
        assert_eq!(reply(request).await, (status, json!({"error": error})));
    }
    let config = Config { needs_key: true, ..Config::default() };
    let closed = World::new(config, Act::Play(plain())).await;
    for request in [closed.post("/chat", "{}"), closed.post("/chat/relay/x", "{}"), closed.get("/models")] {
        assert_eq!(reply(request).await, (401, json!({"error": "Invalid or missing API key"})));
    }
    let guarded = world.get("/models").header("host", "evil.example");
    assert_eq!(reply(guarded).await.1["error"].as_str().map(str::is_empty), Some(false));
}

#[tokio::test]
async fn a_question_takes_the_room_of_its_body_until_the_agent_has_it() {
    const MIB: usize = 1 << 20;
    let meeting = Arc::new(Barrier::new(2));
    let config = Config { body_room: MIB, ..Config::default() };
    let world = World::new(config, Act::Think(Arc::clone(&meeting))).await;
    let text = "x".repeat(MIB / 4 * 3);
    for (path, body) in [
        ("/chat", json!({"messages": [{"role": "user", "content": text}]})),
        ("/api/chat", json!({"ask": text})),
    ] {
        let body = body.to_string();
        let first = async { world.post(path, &body).send().await.unwrap().status() };
        let second = async {
            meeting.wait().await;
            let second = world.post("/chat", &body).send().await.unwrap().status();
            meeting.wait().await;
            second
        };
        let both = timeout(DEADLINE, async { tokio::join!(first, second) }).await;
        assert_eq!(both.unwrap(), (StatusCode::BAD_REQUEST, StatusCode::TOO_MANY_REQUESTS), "{path}");
    }
}

#[tokio::test]
async fn bodies_of_unknown_length_are_limited_too() {
    let world = world().await;
    let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(100)));
    let body = reqwest::Body::wrap_stream(futures_util::StreamExt::take(chunks, 11));
    let request = world.request(Method::POST, "/api/chat").body(body);
    assert_eq!(reply(request).await.0, 413);
}

#[tokio::test]
async fn content_types_of_json_are_accepted() {
    let world = world().await;
    for media in ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"] {
        let request = world.request(Method::POST, "/api/chat").header("content-type", media);
        assert_eq!(reply(request.body(r#"{"ask": "x"}"#)).await.0, 200, "{media}");
    }
    let without = world.request(Method::POST, "/api/chat").body(r#"{"ask": "x"}"#);
    assert_eq!(reply(without).await.0, 200);
}

#[tokio::test]
async fn methods_that_exist_are_listed() {
    let world = world().await;
    let response = world.get("/api/chat").send().await.unwrap();
    assert_eq!(header(&response, "allow"), Some("POST"));
    let response = world.request(Method::POST, "/api/model").send().await.unwrap();
    assert_eq!(header(&response, "allow"), Some("GET,HEAD"));
    let response = world.request(Method::HEAD, "/healthz").send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, ""));
}

#[tokio::test]
async fn models_are_a_list_or_a_string() {
    for (as_string, expected) in [(false, json!(["first", "second"])), (true, json!(r#"["first","second"]"#))]
    {
        let config = Config { model_list_as_string: as_string, ..Config::default() };
        let world = World::new(config, Act::Play(plain())).await;
        assert_eq!(reply(world.get("/api/model")).await, (200, json!({"model_name": expected})));
    }
}

#[tokio::test]
async fn health_is_of_the_process_and_readiness_of_the_whole() {
    let world = world().await;
    assert_eq!(reply(world.get("/healthz")).await, (200, json!({"status": "healthy"})));
    let ready = json!({"status": "ready", "models": ["first", "second"]});
    assert_eq!(reply(world.get("/readyz")).await, (200, ready));

    let mut agent = Stage::new(Act::Play(plain()));
    agent.missing = vec!["no executor has answered".to_owned(), "no models are loaded".to_owned()];
    let world = World::with(Config::default(), agent).await;
    assert_eq!(reply(world.get("/healthz")).await.0, 200);
    let detail = "Service not ready: no executor has answered; no models are loaded";
    assert_eq!(reply(world.get("/readyz")).await, (503, json!({"detail": detail})));
}

#[tokio::test]
async fn runs_are_listed_inspected_and_cancelled() {
    let world = world().await;
    let (status, list) = reply(world.get("/api/runs?limit=2")).await;
    assert_eq!((status, list["runs"].as_array().unwrap().len()), (200, 2));

    let run = json!({
        "run_id": "run-1", "state": "finished", "question": "why?", "model": "first",
        "started_at": "1970-01-01T00:00:01.500Z", "ended_at": null, "last_position": 9, "steps": 2,
        "tool_calls": 1, "prompt_tokens": 10, "completion_tokens": 5, "cost_usd": 0.0, "readers": 0,
    });
    assert_eq!(reply(world.get("/api/runs/run-1")).await, (200, run));

    let cancelled = json!({"run_id": "run-1", "state_before": "running"});
    let cancel = || world.request(Method::POST, "/api/runs/run-1/cancel");
    assert_eq!(reply(cancel()).await, (200, cancelled.clone()));
    assert_eq!(reply(cancel().body(r#"{"reason": "enough"}"#)).await, (200, cancelled));
    assert_eq!(reply(cancel().body("[]")).await.0, 422);
    let reasons: Vec<_> =
        world.agent.cancelled.lock().unwrap().iter().map(|cancel| cancel.reason.clone()).collect();
    assert_eq!(reasons, ["cancelled over HTTP", "enough"]);
}

#[tokio::test]
async fn metrics_are_what_the_renderer_says() {
    let metrics = MetricsText::new(|| "sleuth_up 1\n".to_owned());
    let world = World::new(Config { metrics, ..Config::default() }, Act::Play(plain())).await;
    let response = world.get("/metrics").send().await.unwrap();
    assert_eq!(header(&response, "content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(response.text().await.unwrap(), "sleuth_up 1\n");
}

#[tokio::test]
async fn a_panic_is_an_error_answer() {
    let metrics = MetricsText::new(|| panic!("on purpose"));
    let world = World::new(Config { metrics, ..Config::default() }, Act::Play(plain())).await;
    assert_eq!(reply(world.get("/metrics")).await, (500, json!({"detail": "Internal error"})));
}
