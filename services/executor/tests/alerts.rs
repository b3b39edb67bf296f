//! Alert history over real HTTP, from servers that speak Prometheus' and Alertmanager's protocols.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]

#[expect(dead_code, reason = "not all tests use all of it")]
mod rig;

use std::collections::HashMap;

use axum::{Json, Router, extract::Query, http::HeaderMap, routing::get};
use jiff::{SignedDuration, Timestamp};
use rig::{Rig, config};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};
use wire::executor::{ListToolsRequest, ToolStatus};

/// A server that ends with this.
struct Served(AbortHandle);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(router: Router) -> (String, Served) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, Served(serving.abort_handle()))
}

fn ago(hours: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(hours)
}

/// One alert of the workload that is over, one of another that fires.
async fn range(headers: HeaderMap, Query(query): Query<HashMap<String, String>>) -> Json<Value> {
    assert_eq!(headers["authorization"], "Bearer t");
    assert_eq!(query["query"], r#"ALERTS{alertstate="firing",namespace="shop"}"#);
    let [start, end, step] = ["start", "end", "step"].map(|name| query[name].parse::<i64>().unwrap());
    assert_eq!(end - start, 12 * 3600);
    let series = |name: &str, pod: &str, times: Vec<i64>| {
        let values: Vec<_> = times.into_iter().map(|time| json!([time, "1"])).collect();
        let metric = json!({
            "__name__": "ALERTS", "alertname": name, "alertstate": "firing", "namespace": "shop", "pod": pod,
        });
        json!({"metric": metric, "values": values})
    };
    let own = series("KubePodCrashLooping", "web-5d9-x", vec![start, start + step, start + 2 * step]);
    let other = series("KubePodNotReady", "db-0", vec![end - step, end]);
    Json(json!({"status": "success", "data": {"resultType": "matrix", "result": [other, own]}}))
}

async fn alerts() -> Json<Value> {
    let alert = |name: &str, namespace: &str, from: Timestamp| {
        json!({
            "labels": {"alertname": name, "namespace": namespace, "deployment": "web"},
            "annotations": {"summary": "Web is\nslow"}, "startsAt": from.to_string(),
            "endsAt": (Timestamp::now() + SignedDuration::from_mins(3)).to_string(), "status": {"state": "active"},
        })
    };
    Json(json!([alert("SlowWeb", "shop", ago(2)), alert("SlowWeb", "elsewhere", ago(2))]))
}

async fn rig(settings: &[(&str, &str)]) -> Rig {
    let get = |name: &str| {
        let own = settings.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        own.or_else(|| std::env::var(name).ok())
    };
    let alerts = executor::Config::from_env(&get).unwrap().alerts;
    Rig::with(executor::Config { alerts, ..config() }).await
}

#[tokio::test]
async fn both_sources_are_asked() {
    let (prometheus, _prometheus) = serve(Router::new().route("/api/v1/query_range", get(range))).await;
    let (alertmanager, _alertmanager) = serve(Router::new().route("/am/api/v2/alerts", get(alerts))).await;
    let mut rig = rig(&[
        ("PROMETHEUS_URL", &prometheus),
        ("PROMETHEUS_AUTH_HEADER", "Bearer t"),
        ("ALERTMANAGER_URL", &format!("{alertmanager}/am/")),
    ])
    .await;
    let wanted = json!({"namespace": "shop", "name": "web", "since_hours": 12});
    let told = rig.run("fetch_alert_history", &wanted).await;
    assert_eq!(told.status(), ToolStatus::Success, "{told:?}");
    let lines: Vec<_> = told.data.lines().collect();
    assert_eq!(lines[0], "Prometheus: alerts about web in namespace shop in the last 12 hours:");
    assert!(lines[1].starts_with("- KubePodCrashLooping (namespace=shop, pod=web-5d9-x): "), "{lines:#?}");
    assert!(lines[1].contains(" to ") && !lines[1].contains("since"), "{lines:#?}");
    assert_eq!(lines[3], "Other alerts in namespace shop:");
    assert!(
        lines[4].starts_with("- KubePodNotReady (namespace=shop, pod=db-0): firing since "),
        "{lines:#?}"
    );
    assert_eq!(lines[6], "Alertmanager: alerts about web in namespace shop in the last 12 hours:");
    assert!(lines[7].starts_with("- SlowWeb (deployment=web, namespace=shop): firing since "), "{lines:#?}");
    assert!(lines[7].ends_with(". Web is slow"), "{lines:#?}");
    assert_eq!(lines.len(), 8, "{lines:#?}");
}

#[tokio::test]
async fn a_source_that_fails_is_said_without_its_password() {
    let (prometheus, _served) = serve(Router::new()).await;
    let with_password = prometheus.replace("http://", "http://me:secret@");
    let mut rig =
        rig(&[("PROMETHEUS_URL", &with_password), ("ALERTMANAGER_URL", "http://me:secret@127.0.0.1:1")])
            .await;
    let told = rig.run("fetch_alert_history", &json!({})).await;
    assert_eq!(told.status(), ToolStatus::Error);
    assert!(told.error.contains("404") && told.error.contains("cannot be reached"), "{told:?}");
    assert!(!format!("{told:?}").contains("secret"), "{told:?}");
}

#[tokio::test]
async fn without_a_source_there_is_no_such_tool() {
    let mut rig = rig(&[("PROMETHEUS_URL", ""), ("ALERTMANAGER_URL", "")]).await;
    let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
    assert!(list.tools.iter().all(|tool| tool.name != "fetch_alert_history"));
    let wrong = executor::Config::from_env(&|name| {
        (name == "PROMETHEUS_URL").then(|| "ftp://me:secret@x".to_owned())
    });
    let error = wrong.unwrap_err().to_string();
    assert!(error.contains("PROMETHEUS_URL") && !error.contains("secret"), "{error}");
}
