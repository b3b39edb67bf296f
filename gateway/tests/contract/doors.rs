//! Who gets in: keys, and the guard against other people's pages.

use gateway::Config;
use reqwest::{Method, RequestBuilder};
use runtime::auth::ApiKey;
use serde_json::json;

use crate::{
    agent::Act,
    conversation::plain,
    world::{World, header, json as reply},
};

fn with(request: RequestBuilder, headers: &[(&str, &str)]) -> RequestBuilder {
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
}

#[tokio::test]
async fn a_key_opens_everything_and_nothing_opens_without_it() {
    let config = Config { api_key: Some(ApiKey::new("secret-key")), ..Config::default() };
    let world = World::new(config, Act::Play(plain())).await;
    let right = [("x-api-key", "secret-key")];
    for (path, headers, status) in [
        ("/api/model", &right as &[_], 200),
        ("/api/model", &[("authorization", "Bearer secret-key")], 200),
        ("/api/model", &[("authorization", "bearer secret-key")], 200),
        ("/api/model", &[("authorization", "Bearer wrong"), ("x-api-key", "secret-key")], 200),
        ("/api/model", &[], 401),
        ("/api/model", &[("x-api-key", "wrong")], 401),
        ("/api/model", &[("x-api-key", "secret-key2")], 401),
        ("/api/model", &[("authorization", "Basic secret-key")], 401),
        ("/metrics", &[], 401),
        ("/nope", &[], 401),
        ("/nope", &right, 404),
        ("/api/chat", &[], 401),
        ("/api/chat", &right, 405),
        ("/healthz", &[], 200),
        ("/readyz", &[], 200),
        ("/healthz/", &[], 401),
        ("//healthz", &[], 401),
        ("/api/model?x=/healthz", &[], 401),
        ("/%68ealthz", &[], 401),
        ("/api/model", &[("host", "localhost/healthz?")], 401),
    ] {
        let response = with(world.get(path), headers).send().await.unwrap();
        let seen = response.status().as_u16();
        assert_eq!(seen, status, "{path} {headers:?}");
        if seen == 401 {
            let body = response.text().await.unwrap();
            assert_eq!(body, json!({"detail": "Invalid or missing API key"}).to_string());
        }
    }
}

#[tokio::test]
async fn a_server_without_key_answers_only_to_its_own_names_and_pages() {
    let config = Config {
        allowed_hosts: vec!["sleuth.internal".to_owned()],
        allowed_origins: vec!["https://console.example".parse().unwrap()],
        ..Config::default()
    };
    let world = World::new(config, Act::Play(plain())).await;
    let own = format!("http://{}", world.address);
    for (headers, status) in [
        (&[] as &[(&str, &str)], 200),
        (&[("host", "localhost:9999")], 200),
        (&[("host", "LocalHost")], 200),
        (&[("host", "127.9.9.9:1")], 200),
        (&[("host", "[::1]:8080")], 200),
        (&[("host", "Sleuth.internal")], 200),
        (&[("host", "evil.example")], 421),
        (&[("host", "localhost.evil.example")], 421),
        (&[("host", "127.0.0.1.evil.example")], 421),
        (&[("host", "192.168.0.7:8080")], 421),
        (&[("host", "0.0.0.0:8080")], 421),
        (&[("host", "not a host")], 421),
        (&[("host", "")], 421),
        (&[("origin", &own)], 200),
        (&[("origin", &own), ("sec-fetch-site", "same-origin")], 200),
        (&[("origin", "https://console.example"), ("sec-fetch-site", "cross-site")], 200),
        (&[("origin", "https://evil.example")], 403),
        (&[("origin", "http://localhost:3000")], 403),
        (&[("origin", "null")], 403),
        (&[("origin", "")], 403),
        (&[("origin", "https://console.example.evil.example")], 403),
        (&[("sec-fetch-site", "none")], 200),
        (&[("sec-fetch-site", "same-origin")], 200),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-site")], 403),
    ] {
        let (seen, body) = reply(with(world.ask(r#"{"ask": "x"}"#), headers)).await;
        assert_eq!(seen, status, "{headers:?}: {body}");
    }
}

#[tokio::test]
async fn with_a_key_the_names_do_not_matter() {
    let config = Config { api_key: Some(ApiKey::new("k")), ..Config::default() };
    let world = World::new(config, Act::Play(plain())).await;
    let headers = [("x-api-key", "k"), ("host", "sleuth.example"), ("origin", "https://other.example")];
    let response = with(world.get("/api/model"), &headers).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "access-control-allow-origin"), None, "CORS is closed unless configured");
}

#[tokio::test]
async fn pages_of_configured_origins_get_what_streaming_clients_need() {
    let config = Config {
        api_key: Some(ApiKey::new("k")),
        allowed_origins: vec!["https://console.example".parse().unwrap()],
        ..Config::default()
    };
    let world = World::new(config, Act::Play(plain())).await;
    let preflight = |origin| {
        let asks = [("origin", origin), ("access-control-request-method", "POST")];
        with(world.request(Method::OPTIONS, "/api/chat"), &asks).send()
    };
    let response = preflight("https://console.example").await.unwrap();
    assert_eq!(response.status(), 200, "a preflight carries no key");
    assert_eq!(header(&response, "access-control-allow-origin"), Some("https://console.example"));
    let allowed = header(&response, "access-control-allow-headers").unwrap();
    for name in [
        "content-type",
        "last-event-id",
        "x-api-key",
        "authorization",
        "traceparent",
        "tracestate",
        "idempotency-key",
    ] {
        assert!(allowed.split(',').any(|listed| listed == name), "{name} is not in {allowed}");
    }
    let response = preflight("https://evil.example").await.unwrap();
    assert_eq!(header(&response, "access-control-allow-origin"), None);

    let asks = [("origin", "https://console.example"), ("x-api-key", "k")];
    let response = with(world.ask(r#"{"ask": "x", "stream": true}"#), &asks).send().await.unwrap();
    let exposed = header(&response, "access-control-expose-headers").unwrap();
    assert_eq!(exposed, "x-sleuth-run-id,x-request-id,retry-after,x-total-count");
}
