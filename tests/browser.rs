//! The JavaScript client that the API's document prints, in a real browser, on a page of another origin.
//!
//! `clients/browser/document.js` is that client, unchanged but for the address; `page.html` is what surrounds it.
//! `clients/browser/install` installs the browser and the library; without them the test is left out.

#![cfg(test)]

use std::{
    path::{Path as FilePath, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    response::Html,
    routing::{get, post},
};
use harness::{
    components::has,
    models::{Script, ScriptedOpenAi},
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, sync::mpsc, time::timeout};

/// Time for the browser to start and for the client to be done.
const DEADLINE: Duration = Duration::from_secs(60);
const JAVASCRIPT: [(&str, &str); 1] = [("content-type", "text/javascript")];

/// The page's own server.
struct Site {
    library: PathBuf,
    page: String,
    client: String,
    reports: mpsc::Sender<Value>,
}

fn folder() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/browser")
}

/// The folder of the library, if it and the browser are there.
fn library() -> Option<PathBuf> {
    let check = std::process::Command::new(folder().join("install")).arg("--check").output().unwrap();
    let there = has("chromium", check.status.success());
    there.then(|| PathBuf::from(String::from_utf8(check.stdout).unwrap().trim()))
}

/// The library names its parts without their endings.
async fn part(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> ([(&'static str, &'static str); 1], String) {
    (JAVASCRIPT, std::fs::read_to_string(site.library.join(format!("{name}.js"))).unwrap_or_default())
}

async fn reported(State(site): State<Arc<Site>>, body: Bytes) {
    // Nobody waits for a second report.
    let _ = site.reports.try_send(serde_json::from_slice(&body).unwrap_or_default());
}

fn routes(site: Site) -> Router {
    Router::new()
        .route("/", get(|State(site): State<Arc<Site>>| async move { Html(site.page.clone()) }))
        .route(
            "/client",
            get(|State(site): State<Arc<Site>>| async move { (JAVASCRIPT, site.client.clone()) }),
        )
        .route("/library/{name}", get(part))
        .route("/report", post(reported))
        .with_state(Arc::new(site))
}

async fn sleuth(model: &ScriptedOpenAi, origin: Option<&str>) -> Sleuth {
    let list = format!("gpt: {{model: openai/gpt-4.1, api_key: none, base_url: {}}}\n", model.url());
    let start = Start::serve().models(&list).unwrap();
    origin
        .into_iter()
        .fold(start, |start, origin| start.env("SLEUTH_CORS_ORIGINS", origin))
        .start()
        .await
        .unwrap()
}

/// A browser that shows a page until it is dropped.
fn browse(url: &str, profile: &FilePath) -> tokio::process::Child {
    let quiet = ["--disable-gpu", "--disable-quic", "--disable-sync", "--disable-component-update"];
    Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--no-first-run", "--disable-background-networking"])
        .args(quiet)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn the_documents_client_works_in_a_browser() {
    let Some(library) = library() else { return };
    let model = ScriptedOpenAi::start().await.unwrap();
    let chart = json!({"chart_type": "line", "metric": "cpu"});
    let steps = json!([[
        {"name": "render_chart", "args": chart}, {"name": "navigate_to_page", "args": {"page": "/dashboards"}},
    ]]);
    let script: Script =
        serde_json::from_value(json!({"say": "**I draw.**", "steps": steps, "answer": "It is drawn."}))
            .unwrap();
    model.say_by_default(script);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (server, other) = tokio::join!(sleuth(&model, Some(&origin)), sleuth(&model, None));
    let addressed = |name: &str| {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let text = text.replace("<HOLMES-URL>", &server.address("http").unwrap().to_string());
        text.replace("<OTHER-URL>", &other.address("http").unwrap().to_string())
    };
    let (reports, mut reported) = mpsc::channel(1);
    let client = format!("{}\nstreamChat({{ ask: originalQuestion }});\n", addressed("document.js"));
    let site = Site { library, page: addressed("page.html"), client, reports };
    let serving = tokio::spawn(axum::serve(listener, routes(site)).into_future());
    let profile = tempfile::tempdir().unwrap();
    let _browser = browse(&origin, profile.path());
    let report = timeout(DEADLINE, reported.recv()).await.expect("a report").unwrap();
    serving.abort();

    let seen = report["seen"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let shown =
        |kind: &str| seen.iter().filter(|entry| entry[0] == kind).map(|entry| &entry[1]).collect::<Vec<_>>();
    assert_eq!(shown("markdown"), ["**I draw.**"], "{report:#}");
    assert_eq!(shown("chart"), [&chart], "{report:#}");
    let logged = [
        "Tool started: render_chart",
        "Tool started: navigate_to_page",
        "Tool result: navigate_to_page",
        "Tool result: render_chart",
    ];
    assert_eq!(shown("log"), logged, "{report:#}");
    let last = report["history"]
        .as_array()
        .and_then(|history| history.last())
        .unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(last["content"], "It is drawn.");
    assert!(report["request_id"].is_string(), "headers that pages may read: {report:#}");
    assert_eq!(report["other"], "TypeError", "a server that does not know the page's origin: {report:#}");
}
