//! Investigates the seeded test cluster; skipped where there is none.

use std::{fs::OpenOptions, io::Write};

use crate::support::{Run, ask, bash};
use domain::Message;
use serde_json::Value;

/// The kubeconfig of the test cluster; without one, the skip is noted.
fn kubeconfig() -> Option<String> {
    if let Ok(path) = std::env::var("SLEUTH_TEST_KUBECONFIG") {
        return Some(path);
    }
    let required = std::env::var("SLEUTH_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.contains("cluster"),
        "the test cluster is required and SLEUTH_TEST_KUBECONFIG is not set"
    );
    eprintln!("skipped: cluster is missing");
    if let Ok(path) = std::env::var("SLEUTH_TEST_SKIPS") {
        let mut notes =
            OpenOptions::new().create(true).append(true).open(path).expect("the list of skips opens");
        writeln!(notes, "triage: cluster is missing").expect("the skip is noted");
    }
    None
}

fn asked(question: &str, earlier: &[Message]) -> Option<Run> {
    let kubeconfig = kubeconfig()?;
    let shell = |command: &str| bash(command, &[("KUBECONFIG", &kubeconfig)]);
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S");
    Some(ask(&format!("{question}\n\nThe current UTC date and time are {now}+00:00."), earlier, &shell))
}

/// What each namespace of the cluster must be found to suffer from.
fn expected() -> Vec<(String, Value)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cluster/seed/EXPECTED.json");
    let text = std::fs::read_to_string(path).expect("the expectations are there");
    let all: serde_json::Map<String, Value> = serde_json::from_str(&text).expect("the expectations are JSON");
    all.into_iter().collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn each_namespace_is_explained() {
    let mut failures = Vec::new();
    for (namespace, expectation) in expected() {
        let Some(run) = asked(&format!("what is wrong in namespace {namespace}?"), &[]) else { return };
        let is_healthy = expectation["healthy"] == true;
        if is_healthy != run.answer.contains("nothing wrong with") {
            failures.push(format!(
                "{namespace} is taken for {}:\n{}",
                if is_healthy { "broken" } else { "healthy" },
                run.answer
            ));
        }
        let wanted = texts(&expectation["cause"]).into_iter().chain(texts(&expectation["consequences"]));
        for text in wanted.filter(|text| !run.answer.contains(text)) {
            failures.push(format!("{namespace}: {text} is not named:\n{}", run.answer));
        }
        if run.rounds > 5 {
            failures.push(format!("{namespace} took {} rounds", run.rounds));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n---\n"));
}

#[test]
fn the_whole_cluster_is_explained() {
    let Some(run) = asked("what is wrong with my cluster?", &[]) else { return };
    for (namespace, expectation) in expected() {
        let resource = expectation["resource"].as_str().unwrap_or("nothing wrong");
        assert_eq!(
            run.answer.contains(&format!("{namespace}/")),
            expectation["healthy"] != true,
            "{namespace}: {}",
            run.answer
        );
        assert!(expectation["healthy"] == true || run.answer.contains(resource), "{resource}");
    }
}

#[test]
fn a_name_in_part_narrows_the_look_and_a_follow_up_keeps_it() {
    let Some(run) = asked("why does ledger crash?", &[]) else { return };
    assert!(run.answer.contains("ledger-writer") && run.answer.contains("DATABASE_URL"), "{}", run.answer);
    let Some(logs) = asked("show me the logs", &run.messages) else { return };
    assert!(logs.answer.starts_with("**Log of `payments/ledger-writer"), "{}", logs.answer);
}
