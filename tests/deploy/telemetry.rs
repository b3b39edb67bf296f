//! Dashboard and collector against the metrics that a server really has.

use std::{collections::BTreeSet, time::Duration};

use harness::{
    client,
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};

use super::{text, yaml};

/// Names of metrics in a text, without what a histogram adds to them.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
    let names = words.filter(|word| word.starts_with("sleuth_") && *word != "sleuth_");
    names
        .map(|name| {
            ["_bucket", "_sum", "_count"]
                .iter()
                .fold(name, |name, part| name.trim_end_matches(part))
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn the_dashboard_shows_what_a_server_measures() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    let sleuth = Start::serve().models(&list).unwrap().start().await.unwrap();
    let ask = json!({ "ask": "look FAKE_LLM{\"rounds\": 1}", "stream": true });
    client::stream(&sleuth.url("/api/chat").unwrap(), &ask).await.unwrap();

    let dashboard: Value = serde_json::from_str(&text("deploy/dashboards/sleuth.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries: String = panels.iter().map(|panel| panel["targets"].to_string()).collect();
    // A run is counted once it has ended, which its reader may hear sooner.
    let mut measured = BTreeSet::new();
    for _ in 0..600 {
        measured = metrics(&measurements(&sleuth).await);
        if metrics(&queries) == measured {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(metrics(&queries), measured);
}

/// What a server measures now.
async fn measurements(sleuth: &Sleuth) -> String {
    let scrape = reqwest::get(sleuth.url("/metrics").unwrap()).await.unwrap().text().await.unwrap();
    scrape.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_collector_s_pipelines_are_whole() {
    let collector = yaml(&text("deploy/otel-collector.yaml"));
    let pipelines = collector["service"]["pipelines"].as_object().unwrap();
    for kind in ["receivers", "processors", "exporters"] {
        let used: BTreeSet<_> = pipelines
            .values()
            .flat_map(|pipeline| pipeline[kind].as_array().unwrap())
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        let defined: BTreeSet<_> = collector[kind].as_object().unwrap().keys().cloned().collect();
        assert_eq!(used, defined, "{kind}");
    }
}
