//! One question is one trace, from the browser to the model provider and to the command.

#![cfg(test)]

use std::{collections::BTreeMap, time::Duration};

use harness::{
    collector::{Collector, Span},
    models::ScriptedOpenAi,
    process::Start,
};
use serde_json::json;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SECRET: &str = "sk-test-never-shown";

#[tokio::test]
async fn one_question_is_one_trace() {
    let (collector, openai) = (Collector::start().await.unwrap(), ScriptedOpenAi::start().await.unwrap());
    let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: {SECRET}\n  base_url: {}\n", openai.url());
    let sleuth = Start::serve()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .models(&list)
        .unwrap();
    let sleuth = sleuth.start().await.unwrap();
    let body = json!({ "ask": format!("look FAKE_LLM{}", json!({ "rounds": 1 })) });
    let answer = reqwest::Client::new()
        .post(sleuth.url("/api/chat").unwrap())
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"))
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);

    let wanted = ["invoke_agent sleuth", "chat gpt", "execute_tool bash"];
    let ours = |spans: &[Span]| spans.iter().filter(|span| span.trace == TRACE).cloned().collect::<Vec<_>>();
    let complete = |spans: &[Span]| {
        let ours = ours(spans);
        wanted.iter().all(|name| ours.iter().any(|span| span.name.starts_with(name)))
            && ours.iter().any(|span| span.service == "sleuth-executor")
            && ours.iter().any(|span| span.name.contains("/api/chat"))
    };
    let spans = ours(&collector.until(complete, Duration::from_secs(60)).await);
    let names: Vec<_> = spans.iter().map(|span| (&span.service, &span.name)).collect();
    assert!(complete(&spans), "{names:#?}");

    let by_id: BTreeMap<_, _> = spans.iter().map(|span| (span.id.as_str(), span)).collect();
    let command =
        spans.iter().find(|span| span.service == "sleuth-executor" && span.name.starts_with("execute_tool"));
    let mut path = vec![command.unwrap_or_else(|| panic!("{names:#?}"))];
    while let Some(parent) = by_id.get(path[path.len() - 1].parent.as_str()) {
        path.push(parent);
    }
    let path: Vec<_> = path.iter().map(|span| span.name.as_str()).collect();
    assert!(path.contains(&"invoke_agent sleuth"), "{path:?}");
    assert!(path.last().unwrap().contains("/api/chat"), "{path:?}");

    let asked = openai.requests();
    let sent = asked[0].headers["traceparent"].to_str().unwrap();
    assert!(sent.contains(TRACE), "{sent}");

    let everything = format!("{spans:?}{:?}", sleuth.log());
    assert!(!everything.contains(SECRET), "a key is in the telemetry");
    assert!(!everything.contains("echo r0t0\\nr0t0"), "the output of a tool is in the telemetry");
}
