//! Metrics of a real Prometheus, asked for with HolmesGPT's tools.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]

#[expect(dead_code, reason = "not all tests use all of it")]
mod rig;

use std::{net::TcpListener, path::PathBuf, process::Stdio, time::Duration};

use rig::{Rig, config};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use wire::executor::{Finished, ListToolsRequest, ToolStatus, ToolsetStatus};

/// What Prometheus is told to record, and to alert on.
const RULES: &str = "groups:\n- name: own\n  interval: 1s\n  rules:\n  - record: own:seven\n    expr: vector(7)\n  \
     - alert: AlwaysFires\n    expr: vector(1) > 0\n";

/// A Prometheus that scrapes itself. Ends when it is dropped.
struct Prometheus {
    url: String,
    _process: Child,
    _data: TempDir,
}

/// The program, if it is there.
fn program() -> Option<PathBuf> {
    let install = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/prometheus/install");
    let check = std::process::Command::new(install).arg("--check").output().unwrap();
    let path = String::from_utf8(check.stdout).unwrap();
    rig::is_there("prometheus", check.status.success()).then(|| PathBuf::from(path.trim()))
}

impl Prometheus {
    /// Starts it, and waits until it has scraped and judged its rules.
    async fn start(program: PathBuf) -> Self {
        let data = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::fs::write(data.path().join("rules.yml"), RULES).unwrap();
        let scrape = json!([{"job_name": "self", "static_configs": [{"targets": [address.to_string()]}]}]);
        let settings = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": scrape,
        });
        std::fs::write(data.path().join("prometheus.yml"), settings.to_string()).unwrap();
        let process = Command::new(program)
            .arg(format!("--config.file={}", data.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", data.path().join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let url = format!("http://{address}");
        let ready = async {
            let query = format!("{url}/api/v1/query?query=own:seven%20and%20on()%20up");
            loop {
                let answer = reqwest::get(&query).await;
                if let Ok(answer) = answer
                    && answer.json::<Value>().await.is_ok_and(|answer| !answer["data"]["result"][0].is_null())
                {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), ready).await.expect("a ready Prometheus");
        Self { url, _process: process, _data: data }
    }
}

async fn rig(toolset: Value) -> Rig {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, json!({"toolsets": {"prometheus/metrics": toolset}}).to_string()).unwrap();
    Rig::with(executor::Config { toolsets: Some(file.path().to_owned()), ..config() }).await
}

fn json_of(end: &Finished) -> Value {
    assert_eq!(end.error, "");
    serde_json::from_str(&end.data).unwrap()
}

#[tokio::test]
async fn metrics_are_found_and_asked_for() {
    let Some(program) = program() else { return };
    let prometheus = Prometheus::start(program).await;
    let mut rig = rig(json!({"config": {"prometheus_url": prometheus.url}})).await;

    let names = rig.run("get_metric_names", &json!({"match": "{__name__=~\"own:.*|up\"}"})).await;
    assert_eq!(json_of(&names), json!({"status": "success", "data": ["own:seven", "up"]}));
    let values = rig.run("get_label_values", &json!({"label": "job", "match": "up"})).await;
    assert_eq!(json_of(&values)["data"], json!(["self"]));
    let labels = json_of(&rig.run("get_all_labels", &json!({"start": "-60"})).await);
    assert!(labels["data"].as_array().unwrap().contains(&json!("instance")), "{labels}");
    let series = json_of(&rig.run("get_series", &json!({"match": "up"})).await);
    assert_eq!((&series["data"][0]["job"], &series["data"][1]), (&json!("self"), &Value::Null));
    let metadata = json_of(&rig.run("get_metric_metadata", &json!({"metric": "go_goroutines"})).await);
    assert_eq!(metadata["data"]["go_goroutines"][0]["type"], "gauge");
    let all = json_of(&rig.run("get_metric_metadata", &json!({})).await);
    assert_eq!(all["data"].as_object().unwrap().len(), 100);
    assert!(all["truncated"].as_str().unwrap().starts_with("These are 100 of "), "{}", all["truncated"]);
    let rules = json_of(&rig.run("list_prometheus_rules", &json!({})).await);
    assert_eq!(rules["data"]["groups"][0]["rules"][1]["name"], "AlwaysFires");

    let query = json!({"query": "own:seven * 6", "description": "the answer"});
    let now = json_of(&rig.run("execute_prometheus_instant_query", &query).await);
    assert_eq!((&now["status"], &now["data"]["result"][0]["value"][1]), (&json!("success"), &json!("42")));
    assert_eq!((&now["query"], &now["description"]), (&query["query"], &query["description"]));
    let range = json!({"query": "vector(1)", "description": "d", "start": "-600", "step": "1m", "output_type": "Plain"});
    let range = json_of(&rig.run("execute_prometheus_range_query", &range).await);
    assert_eq!(range["data"]["result"][0]["values"].as_array().unwrap().len(), 11, "{range}");
    assert_eq!((&range["step"], &range["output_type"]), (&json!(60), &json!("Plain")));
}

#[tokio::test]
async fn what_is_wrong_with_a_query_is_said() {
    let Some(program) = program() else { return };
    let prometheus = Prometheus::start(program).await;
    let mut rig = rig(json!({"config": {"prometheus_url": prometheus.url}})).await;
    let query = |query: &str| json!({"query": query, "description": "d"});
    let end = rig.run("execute_prometheus_instant_query", &query("sum(")).await;
    assert_eq!(end.status(), ToolStatus::Error);
    assert!(end.error.contains("400") && end.error.contains("unclosed left parenthesis"), "{}", end.error);
    let end = rig.run("execute_prometheus_instant_query", &query("no_such_metric")).await;
    assert_eq!(end.status(), ToolStatus::NoData);
    assert!(json_of(&end)["error_message"].as_str().unwrap().contains("no result"), "{}", end.data);
    for (tool, arguments, why) in [
        ("execute_prometheus_instant_query", json!({"description": "d"}), "`query` is missing"),
        ("execute_prometheus_range_query", json!({"query": "up", "description": "d", "step": "x"}), "`step`"),
        ("get_series", json!({"match": "up", "start": "-1", "end": "soon"}), "`end`"),
        (
            "get_series",
            json!({"match": "up", "start": "2024-01-01T00:00:00Z", "end": "2023-01-01T00:00:00Z"}),
            "before",
        ),
        ("get_label_values", json!({"label": "../query"}), "the name of a label"),
    ] {
        let end = rig.run(tool, &arguments).await;
        assert!(
            end.error.starts_with("refused: ") && end.error.contains(why),
            "{tool} {arguments}: {}",
            end.error
        );
    }
}

#[tokio::test]
async fn a_prometheus_that_nobody_names_is_missed_only_where_it_is_wanted() {
    for (toolset, status, why) in [
        (json!({}), ToolsetStatus::Failed, "set `prometheus_url` or PROMETHEUS_URL"),
        (json!({"enabled": false}), ToolsetStatus::Disabled, ""),
        (json!({"config": {"prometheus_url": "http://127.0.0.1:9"}}), ToolsetStatus::Enabled, ""),
    ] {
        let mut rig = rig(toolset).await;
        let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
        let own = list.toolsets.iter().find(|own| own.name == "prometheus/metrics").unwrap();
        assert_eq!(own.status(), status);
        assert!(own.error.contains(why), "{}", own.error);
        let offered = list.tools.iter().any(|tool| tool.name == "execute_prometheus_range_query");
        assert_eq!(offered, status == ToolsetStatus::Enabled);
    }
}

#[tokio::test]
async fn headers_are_sent_and_their_secrets_masked() {
    let (seen, mut headers) = tokio::sync::mpsc::channel(1);
    let app = axum::Router::new().fallback(async move |request: axum::extract::Request| {
        seen.send(request.headers().clone()).await.unwrap();
        axum::Json(json!({"status": "success", "data": ["s3cret-of-the-tenant"]}))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/prom", listener.local_addr().unwrap());
    let _serving = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        axum::serve(listener, app).await.unwrap();
    }));
    let sent = json!({"Authorization": "Bearer s3cret-of-the-tenant", "X-Scope-OrgID": "blue"});
    let mut rig = rig(json!({"config": {"prometheus_url": url, "headers": sent}})).await;
    let end = rig.run("get_all_labels", &json!({})).await;
    assert!(!end.data.contains("s3cret-of-the-tenant"), "{}", end.data);
    let headers = headers.recv().await.unwrap();
    assert_eq!(
        (&headers["x-scope-orgid"], &headers["authorization"]),
        (&"blue".parse().unwrap(), &"Bearer s3cret-of-the-tenant".parse().unwrap())
    );
}
