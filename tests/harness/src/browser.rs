//! Pages in a real browser, on an origin of their own.
//!
//! `tests/clients/browser/install` installs the browser, and the library that pages may import.

use std::{
    path::{Path as FilePath, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    response::Html,
    routing::{get, post},
};
use serde_json::Value;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use crate::components::has;

/// Time for the browser to start and for the page to be done.
const DEADLINE: Duration = Duration::from_secs(60);
const JAVASCRIPT: [(&str, &str); 1] = [("content-type", "text/javascript")];

/// The server of a page: `/` is the page, `/client` its script, `/library/NAME` a part of the library, and what is
/// posted to `/report` is what the page has to say.
#[derive(Debug)]
pub struct Site {
    library: PathBuf,
    listener: TcpListener,
}

struct Content {
    library: PathBuf,
    page: String,
    client: String,
    reports: mpsc::Sender<Value>,
}

/// A file beside the pages.
///
/// # Errors
/// If there is none.
pub fn file(name: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(folder().join(name)).with_context(|| format!("no {name}"))
}

fn folder() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../clients/browser")
}

impl Site {
    /// A server on a free port; `None` if the machine has no browser.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn new() -> anyhow::Result<Option<Self>> {
        let check = Command::new(folder().join("install")).arg("--check").output().await?;
        if !has("chromium", check.status.success()) {
            return Ok(None);
        }
        let library = PathBuf::from(String::from_utf8(check.stdout)?.trim());
        Ok(Some(Self { library, listener: TcpListener::bind("127.0.0.1:0").await? }))
    }

    /// The origin of the page.
    ///
    /// # Errors
    /// If the port is gone.
    pub fn origin(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}", self.listener.local_addr()?))
    }

    /// Shows a page with its script until it reports.
    ///
    /// # Errors
    /// If it reports nothing.
    pub async fn show(self, page: String, client: String) -> anyhow::Result<Value> {
        let origin = self.origin()?;
        let (reports, mut reported) = mpsc::channel(1);
        let content = Content { library: self.library, page, client, reports };
        let serving = axum::serve(self.listener, routes(content)).into_future();
        let _serving = AbortOnDropHandle::new(tokio::spawn(serving));
        let profile = tempfile::tempdir()?;
        let _browser = browse(&origin, profile.path())?;
        timeout(DEADLINE, reported.recv()).await.context("the page says nothing")?.context("no report")
    }
}

fn routes(content: Content) -> Router {
    type Shared = State<Arc<Content>>;
    Router::new()
        .route("/", get(|State(content): Shared| async move { Html(content.page.clone()) }))
        .route("/client", get(|State(content): Shared| async move { (JAVASCRIPT, content.client.clone()) }))
        .route("/library/{name}", get(part))
        .route("/report", post(report))
        .with_state(Arc::new(content))
}

/// The library names its parts without their endings.
async fn part(
    State(content): State<Arc<Content>>,
    Path(name): Path<String>,
) -> ([(&'static str, &'static str); 1], String) {
    (JAVASCRIPT, std::fs::read_to_string(content.library.join(format!("{name}.js"))).unwrap_or_default())
}

async fn report(State(content): State<Arc<Content>>, body: Bytes) {
    // Nobody waits for a second report.
    let _ = content.reports.try_send(serde_json::from_slice(&body).unwrap_or_default());
}

/// A browser that shows a page until it is dropped.
fn browse(url: &str, profile: &FilePath) -> anyhow::Result<Child> {
    let quiet = ["--disable-gpu", "--disable-quic", "--disable-sync", "--disable-component-update"];
    let mut browser = Command::new("chromium");
    browser
        .args(["--headless", "--no-sandbox", "--no-first-run", "--disable-background-networking"])
        .args(quiet)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    Ok(browser.spawn()?)
}
