//! Which executor takes a call: one that has its tool, with the labels that are asked for.

use std::fs;

use harness::client;
use serde_json::{Value, json};
use wire::agent::{ChatRequest, event::Kind};

use crate::fleet::{Fleet, bash, places, question, url};

/// Two executors, each with a toolset of its own and one that both have.
async fn two(agent: &[&str]) -> (Fleet, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let tool = |tool: &str| json!({ "name": tool, "description": "Says where it is.", "command": format!("echo from-{name}") });
        let toolsets = json!({ "toolsets": {
            format!("own/{name}"): { "description": "Its own.", "tools": [tool(&format!("only_{name}"))] },
            "both": { "description": "Of both.", "tools": [tool("where")] },
        }});
        fs::write(folder.path().join(name), toolsets.to_string()).unwrap();
    }
    let prepare = |number: usize, start: harness::process::Start| {
        let name = ["a", "b"][number];
        start
            .env("SLEUTH_TOOLSETS", folder.path().join(name))
            .env("SLEUTH_EXECUTOR_LABELS", format!("zone={name}, team=shop"))
    };
    let agent = |start| agent.iter().fold(start, |start: harness::process::Start, own| start.arg(*own));
    (Fleet::start(2, &prepare, agent).await, folder)
}

fn call(tool: &str) -> Value {
    json!({ "name": tool, "args": {} })
}

/// The results of the calls of a question, each behind the name of its tool, as they came.
async fn results(fleet: &Fleet, tools: &[&str], labels: &Value) -> Vec<String> {
    let body = json!({
        "ask": question(&[tools.iter().map(|tool| call(tool)).collect()]), "executor_labels": labels,
    });
    let answer = fleet.ask(&body).await;
    let calls = answer["tool_calls"].as_array().unwrap();
    let text = |call: &Value| format!("{}: {}", call["tool_name"], call["result"]);
    calls.iter().map(text).collect()
}

fn all_say(results: &[String], text: &str) -> bool {
    !results.is_empty() && results.iter().all(|result| result.contains(text))
}

#[tokio::test]
async fn executors_with_other_tools_and_labels_are_one_offer() {
    let (fleet, _files) = two(&[]).await;
    let said = results(&fleet, &["only_a", "only_b", "only_a", "only_b"], &Value::Null).await;
    let own = |name: &str| {
        let ours =
            |said: &&String| said.contains(&format!("only_{name}")) && said.contains(&format!("from-{name}"));
        said.iter().filter(ours).count()
    };
    assert_eq!((own("a"), own("b")), (2, 2), "{said:?}");
    let where_ = ["where"; 6];
    for (labels, from) in [
        (json!({ "zone": "a" }), "from-a"),
        (json!({ "zone": "b", "team": "shop" }), "from-b"),
        (json!({ "toolset": "own/a" }), "from-a"),
        (json!({ "toolset": "own/b", "zone": "b" }), "from-b"),
    ] {
        let said = results(&fleet, &where_, &labels).await;
        assert!(all_say(&said, from), "{labels}: {said:?}");
    }
    let said = results(&fleet, &["only_b"], &json!({ "zone": "a" })).await;
    assert!(all_say(&said, "Failed to find tool"), "{said:?}");

    let none = json!({ "ask": "hm", "executor_labels": { "zone": "c" } });
    let (status, answer) = client::post(&fleet.chat(), &none).await.unwrap();
    assert_eq!(status, 503);
    assert!(answer.to_string().contains("none has the labels zone=c"), "{answer}");
    let none = ChatRequest {
        question: "hm".to_owned(),
        executor_labels: [("zone".to_owned(), "c".to_owned())].into(),
        ..ChatRequest::default()
    };
    let refused = fleet.grpc().await.chat(none).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unavailable);
    assert!(refused.message().contains("none has the labels zone=c"), "{refused:?}");
    let wrong = json!({ "ask": "hm", "executor_labels": { "zone": 1 } });
    assert_eq!(client::post(&fleet.chat(), &wrong).await.unwrap().0, 422);
}

#[tokio::test]
async fn an_agent_is_kept_to_its_labels_whatever_a_run_asks_for() {
    let (fleet, _files) = two(&["--executor-selector", "zone=b,team=shop"]).await;
    assert!(all_say(&results(&fleet, &["where"; 4], &Value::Null).await, "from-b"));
    let none = json!({ "ask": "hm", "executor_labels": { "zone": "a" } });
    assert!(client::post(&fleet.chat(), &none).await.unwrap().0.is_server_error());

    // The same over gRPC, where the log says which executor it was, before anything came from there.
    let request = ChatRequest {
        question: question(&[vec![call("where"), bash("echo hello")]]),
        executor_labels: [("toolset".to_owned(), "own/b".to_owned())].into(),
        ..ChatRequest::default()
    };
    let mut events = fleet.grpc().await.chat(request).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(event) = events.message().await.unwrap() {
        all.push(event);
    }
    assert_eq!(places(&all), [url(&fleet.executors[1]), url(&fleet.executors[1])]);
    let at = |wanted: &dyn Fn(&Kind) -> bool| {
        let found = all.iter().position(|event| event.kind.as_ref().is_some_and(wanted));
        found.unwrap_or_else(|| panic!("{all:?}"))
    };
    let placed = at(&|kind| matches!(kind, Kind::CallPlaced(_)));
    assert!(at(&|kind| matches!(kind, Kind::ToolStarted(_))) < placed);
    assert!(placed < at(&|kind| matches!(kind, Kind::ToolOutput(_) | Kind::ToolFinished(_))));
}
