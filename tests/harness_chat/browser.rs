//! The client that was written from the API's document alone, in Node and in a real browser.

use std::{path::PathBuf, process::Stdio, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    response::Html,
    routing::{get, post},
};
use harness::components::{has, has_program};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, sync::mpsc, time::timeout};

use crate::bench::{Bench, SOON, bash};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

fn question() -> String {
    format!(
        "look FAKE_LLM{}",
        json!({"say": "I make it.", "steps": [[bash("mkdir one")]], "answer": "Made."})
    )
}

fn check(bench: &Bench, seen: &Value) {
    assert_eq!(seen["text"], "I make it.Made.", "{seen:#}");
    assert_eq!(seen["relays"], json!([{"tool": "bash", "params": {"command": "mkdir one"}}]));
    assert_eq!(seen["results"][0]["exitCode"], 0);
    assert_eq!((&seen["reason"], &seen["models"][0]), (&json!("final"), &json!("gpt")));
    assert_eq!(bench.openai.requests().len(), 2);
}

#[tokio::test]
async fn a_client_by_the_document_works_in_node() {
    if !has_program("node") {
        return;
    }
    let bench = Bench::start().await;
    let client = file("harness/node.mjs");
    let run = Command::new("node").arg(client).args([bench.url(), question()]).output();
    let output = timeout(SOON, run).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check(&bench, &serde_json::from_slice(&output.stdout).unwrap());
}

/// The page's own server.
struct Site {
    page: String,
    reports: mpsc::Sender<Value>,
}

async fn reported(State(site): State<Arc<Site>>, body: Bytes) {
    // Nobody waits for a second report.
    let _ = site.reports.try_send(serde_json::from_slice(&body).unwrap_or_default());
}

async fn client() -> ([(&'static str, &'static str); 1], String) {
    let text = std::fs::read_to_string(file("harness/client.mjs")).unwrap();
    ([("content-type", "text/javascript")], text)
}

#[tokio::test]
async fn a_client_by_the_document_works_in_a_browser() {
    let check_for = std::process::Command::new(file("browser/install")).arg("--check").output().unwrap();
    if !has("chromium", check_for.status.success()) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let bench = Bench::with(|start, _| start.env("SLEUTH_CORS_ORIGINS", &origin)).await;
    let page = std::fs::read_to_string(file("harness/page.html")).unwrap();
    let quoted = question().replace('"', "\\\"");
    let page = page.replace("<URL>", &bench.url()).replace("<QUESTION>", &quoted);
    let (reports, mut reports_of) = mpsc::channel(1);
    let routes = Router::new()
        .route("/", get(|State(site): State<Arc<Site>>| async move { Html(site.page.clone()) }))
        .route("/client.mjs", get(client))
        .route("/report", post(reported))
        .with_state(Arc::new(Site { page, reports }));
    let serving = tokio::spawn(axum::serve(listener, routes).into_future());
    let profile = tempfile::tempdir().unwrap();
    let _browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-gpu", "--disable-quic", "--disable-sync", "--disable-component-update"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(&origin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let seen = timeout(SOON, reports_of.recv()).await.expect("a report").unwrap();
    serving.abort();
    check(&bench, &seen);
}
