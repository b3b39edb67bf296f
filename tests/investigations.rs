//! `builtin/triage` on a real API server, through the whole path: HTTP, gateway, agent, executor, kubectl.

#![cfg(test)]

use std::{collections::BTreeMap, path::Path};

use futures_util::{StreamExt as _, stream};
use harness::{
    client,
    components::cluster,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};

/// What the seeds of a namespace are about.
#[derive(Debug)]
struct Expected {
    healthy: bool,
    cause: Vec<String>,
    resource: Option<String>,
}

fn expectations() -> BTreeMap<String, Expected> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/seed/EXPECTED.json");
    let all: BTreeMap<String, Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let texts = |value: &Value| {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    all.into_iter()
        .map(|(namespace, value)| {
            let expected = Expected {
                healthy: value["healthy"].as_bool().unwrap(),
                cause: texts(&value["cause"]),
                resource: value["resource"].as_str().map(str::to_owned),
            };
            (namespace, expected)
        })
        .collect()
}

async fn serve(kubeconfig: &Path) -> Sleuth {
    Start::serve().env("KUBECONFIG", kubeconfig).start().await.unwrap()
}

#[tokio::test]
async fn the_cause_of_each_seeded_problem_is_named_and_nothing_else() {
    let Some(kubeconfig) = cluster() else { return };
    let sleuth = serve(&kubeconfig).await;
    let url = sleuth.url("/api/chat").unwrap();
    let answers = stream::iter(expectations()).map(|(namespace, expected)| {
        let url = url.clone();
        async move {
            let ask = format!("What is wrong in namespace {namespace}?");
            let (status, body) = client::post(&url, &json!({ "ask": ask })).await.unwrap();
            assert_eq!(status, 200, "{namespace}: {body}");
            (namespace, expected, body["analysis"].as_str().unwrap().to_owned())
        }
    });
    let answers: Vec<_> = answers.buffer_unordered(2).collect().await;
    assert!(answers.len() >= 14, "seeds are missing: {}", answers.len());
    for (namespace, expected, analysis) in answers {
        let summary = analysis.split("\n## ").next().unwrap_or_default();
        if expected.healthy {
            assert!(summary.contains("nothing wrong"), "{namespace} is healthy:\n{analysis}");
            continue;
        }
        for cause in &expected.cause {
            assert!(analysis.contains(cause.as_str()), "{namespace}: `{cause}` is missing in:\n{analysis}");
        }
        let resource = expected.resource.unwrap();
        assert!(summary.contains(&resource), "{namespace}: the summary must blame {resource}:\n{analysis}");
    }
}

#[tokio::test]
async fn an_investigation_streams_each_step_as_it_happens() {
    let Some(kubeconfig) = cluster() else { return };
    let sleuth = serve(&kubeconfig).await;
    let body = json!({ "ask": "Why is orders-api failing in namespace orders?", "stream": true });
    let frames = client::stream(&sleuth.url("/api/chat").unwrap(), &body).await.unwrap();
    let names: Vec<_> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(names.first(), Some(&"token_count"));
    assert_eq!(names.last(), Some(&"ai_answer_end"));
    let started = names.iter().filter(|name| **name == "start_tool_calling").count();
    let finished = names.iter().filter(|name| **name == "tool_calling_result").count();
    assert!(started >= 4 && started == finished, "{names:?}");
    let analysis = frames.last().unwrap().data["analysis"].as_str().unwrap();
    assert!(analysis.contains("orders-db") && analysis.contains("OOMKilled"), "{analysis}");
    let ids: Vec<_> = frames.iter().map(|frame| &frame.id).collect();
    assert!(ids.iter().all(|id| !id.is_empty()) && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
}

#[tokio::test]
async fn a_follow_up_question_uses_the_history() {
    let Some(kubeconfig) = cluster() else { return };
    let sleuth = serve(&kubeconfig).await;
    let url = sleuth.url("/api/chat").unwrap();
    let (_, first) =
        client::post(&url, &json!({ "ask": "What is wrong in namespace billing?" })).await.unwrap();
    let follow_up =
        json!({ "ask": "Show me its logs", "conversation_history": first["conversation_history"] });
    let (status, second) = client::post(&url, &follow_up).await.unwrap();
    assert_eq!(status, 200, "{second}");
    let analysis = second["analysis"].as_str().unwrap();
    assert!(analysis.contains("invoice-backfill") && analysis.contains("tax_rate"), "{analysis}");
    assert_eq!(second["follow_up_actions"], json!([]));
}
