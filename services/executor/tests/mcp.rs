//! Tools of real MCP servers, over HTTP and over standard streams.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]

mod demo;
#[expect(dead_code, reason = "not all tests use all of it")]
mod rig;

use std::{sync::Arc, time::Duration};

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
};
use rig::{Rig, config};
use rmcp::transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager};
use serde_json::{Value, json};
use wire::executor::{
    EffectClass, Ending, ListToolsRequest, ListToolsResponse, PlanRequest, ToolStatus, ToolsetStatus, Verdict,
};

const KEY: &str = "Bearer fixture";

/// An executor with these MCP servers.
async fn rig(servers: Value, refresh: Duration) -> Rig {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("toolsets.yaml");
    std::fs::write(&path, json!({"mcp_servers": servers}).to_string()).unwrap();
    Rig::with(executor::Config { toolsets: Some(path), toolset_refresh: refresh, ..config() }).await
}

const LONG: Duration = Duration::from_secs(300);

fn stdio() -> Value {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/mcp-demo");
    assert!(program.exists(), "build the examples: {}", program.display());
    json!({"description": "A demo", "allowed_tools": ["*"], "config": {"mode": "stdio", "command": program}})
}

/// A demo server over HTTP that asks for a key; ends when it is dropped.
async fn http() -> (tokio_util::task::AbortOnDropHandle<()>, Value) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let manager = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(demo::Demo), manager, Default::default());
    let app = axum::Router::new().nest_service("/mcp", service).layer(from_fn(with_key));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let config = json!({"mode": "streamable-http", "url": url, "headers": {"Authorization": KEY}});
    let server = json!({"allowed_tools": ["e*", "bash", "fail", "draw"], "config": config});
    (tokio_util::task::AbortOnDropHandle::new(serving), server)
}

async fn with_key(request: Request, next: Next) -> Response {
    if request.headers().get("authorization").is_none_or(|key| key != KEY) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

/// A demo server over HTTP whose calls need a tenant; ends when it is dropped.
async fn tenants() -> (tokio_util::task::AbortOnDropHandle<()>, Value) {
    async fn with_tenant(request: Request, next: Next) -> Response {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let calls = body.windows(12).any(|text| text == b"\"tools/call\"");
        if calls && parts.headers.get("x-tenant").is_none_or(|tenant| tenant != "t-blue") {
            return StatusCode::FORBIDDEN.into_response();
        }
        next.run(Request::from_parts(parts, body.into())).await
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let manager = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(demo::Demo), manager, Default::default());
    let app = axum::Router::new().nest_service("/mcp", service).layer(from_fn(with_tenant));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let extra = json!({"X-Tenant": "t-{{ request_context.headers['X-Tenant-Id'] }}"});
    let server = json!({"allowed_tools": ["*"], "approval_required_tools": ["fail"],
        "config": {"url": url, "extra_headers": extra}});
    (tokio_util::task::AbortOnDropHandle::new(serving), server)
}

#[tokio::test]
async fn a_call_brings_the_headers_of_whoever_asks() {
    let (_server, config) = tenants().await;
    let mut rig = rig(json!({"demo": config}), LONG).await;
    let end = rig.run("echo", &json!({"text": "x"})).await;
    assert!(end.error.contains("has no header `X-Tenant-Id`"), "{}", end.error);
    for (tenant, status) in [("blue", ToolStatus::Success), ("red", ToolStatus::Error)] {
        let mut asked = rig::request(&rig::unique(), "echo", &json!({"text": "x"}));
        asked.request_headers = [("x-tenant-id".to_owned(), tenant.to_owned())].into();
        let events = rig.execute(asked).await.unwrap();
        let end = rig::finished(&rig::rest(events).await);
        assert_eq!(end.status(), status, "{tenant}: {}", end.error);
    }
    let plan = PlanRequest { tool: "fail".to_owned(), ..PlanRequest::default() };
    assert_eq!(rig.client.plan(plan).await.unwrap().into_inner().verdict(), Verdict::Ask);
}

async fn list(rig: &mut Rig) -> ListToolsResponse {
    rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner()
}

async fn answers_like_a_demo(rig: &mut Rig) {
    let names: Vec<_> = list(rig).await.tools.into_iter().map(|tool| tool.name).collect();
    assert!(
        ["echo", "demo__bash", "process_id"].iter().all(|name| names.iter().any(|own| own == name)),
        "{names:?}"
    );
    for (tool, status, data, error) in [
        ("echo", ToolStatus::Success, "you said:\n; $(x) \"'", ""),
        ("fail", ToolStatus::Error, "", "it is broken"),
        ("draw", ToolStatus::Success, "[image 1: image/png]\n[an image (image/svg+xml) is left out]", ""),
        ("demo__bash", ToolStatus::Success, "not the real one", ""),
    ] {
        let end = rig.run(tool, &json!({"text": "; $(x) \"'"})).await;
        assert_eq!((end.status(), end.data.as_str(), end.error.as_str()), (status, data, error), "{tool}");
        assert_eq!(end.ending(), Ending::Answered);
        assert_eq!(end.images.len(), usize::from(tool == "draw"));
    }
    assert_eq!(rig.bash("echo real").await.data, "echo real\nreal");
}

#[tokio::test]
async fn tools_of_a_server_over_http() {
    let (_server, config) = http().await;
    let mut rig = rig(json!({"demo": config}), LONG).await;
    answers_like_a_demo(&mut rig).await;
}

#[tokio::test]
async fn what_is_not_allowed_asks_a_person() {
    let (_server, config) = http().await;
    let mut rig = rig(json!({"demo": config}), LONG).await;
    for (tool, verdict) in [("echo", Verdict::Allow), ("process_id", Verdict::Ask)] {
        let plan = PlanRequest { tool: tool.to_owned(), ..PlanRequest::default() };
        let plan = rig.client.plan(plan).await.unwrap().into_inner();
        assert_eq!((plan.verdict(), plan.effect()), (verdict, EffectClass::Mutation), "{tool}");
    }
    assert_eq!(rig.run("process_id", &json!({})).await.ending(), Ending::Refused);
}

#[tokio::test]
async fn tools_of_a_server_over_standard_streams() {
    let mut rig = rig(json!({"demo": stdio()}), LONG).await;
    answers_like_a_demo(&mut rig).await;
    let (first, second) =
        (rig.run("process_id", &json!({})).await.data, rig.run("process_id", &json!({})).await.data);
    assert_eq!(first, second, "one process serves all calls");
}

#[tokio::test]
async fn a_server_that_died_is_started_again_and_ends_with_its_executor() {
    let mut rig = rig(json!({"demo": stdio()}), LONG).await;
    let end = rig.run("abort", &json!({})).await;
    assert_eq!(end.status(), ToolStatus::Error);
    assert!(end.error.starts_with("MCP server `demo`: "), "{}", end.error);
    let id = rig.run("process_id", &json!({})).await.data;
    let process = std::path::PathBuf::from("/proc").join(&id);
    assert!(process.exists());
    drop(rig);
    let gone = async {
        while process.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("its end");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_says_why() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let servers = json!({
        "far": {"url": url},
        "none": {"config": {"mode": "stdio", "command": "sleuth-no-such-program"}},
        "off": {"url": url, "enabled": false},
    });
    let mut rig = rig(servers, LONG).await;
    let list = list(&mut rig).await;
    for (name, status, why) in [
        ("far", ToolsetStatus::Failed, "Connection refused"),
        ("none", ToolsetStatus::Failed, "not found"),
        ("off", ToolsetStatus::Disabled, ""),
    ] {
        let toolset = list.toolsets.iter().find(|toolset| toolset.name == name).unwrap();
        assert_eq!(toolset.status(), status, "{name}: {}", toolset.error);
        assert!(toolset.error.contains(why), "{name}: {}", toolset.error);
    }
}
