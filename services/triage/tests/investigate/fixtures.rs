//! Replays recorded investigations: each rule has its own.

use std::path::{Path, PathBuf};

use domain::{Message, Role};
use model::Request;
use serde_json::{Value, json};

use crate::{
    support::{ask, call},
    transcript::Recording,
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|own| own == extension)).collect();
    files.sort();
    files
}

#[test]
fn recordings_are_explained() {
    let mut failures = Vec::new();
    let folders = std::fs::read_dir(folder("tests/fixtures")).expect("there are recordings");
    for path in folders.flat_map(|folder| files(&folder.expect("a folder").path(), "txt")) {
        let recording = Recording::read(&path);
        let run = ask(&recording.question(), &[], &|command| recording.run(command));
        let missing = recording
            .expect
            .iter()
            .filter(|text| !run.answer.contains(*text))
            .map(|text| format!("lacks {text}"));
        let wrong = recording
            .never
            .iter()
            .filter(|text| run.answer.contains(*text))
            .map(|text| format!("has {text}"));
        let found: Vec<String> = missing.chain(wrong).collect();
        if !found.is_empty() {
            failures.push(format!("{}: {}\n{}", path.display(), found.join("; "), run.answer));
        }
        assert!(!recording.expect.is_empty(), "{} expects nothing", path.display());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n---\n"));
}

#[test]
fn each_rule_has_a_recording() {
    for rule in ["src/rules/k8s", "src/rules/host"].iter().flat_map(|rules| files(&folder(rules), "rs")) {
        let name = rule.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(!files(&folder("tests/fixtures").join(name), "txt").is_empty(), "no recording for {name}");
    }
}

/// What a recorded investigation answers to a client that asks for these properties.
fn formed(recording: &str, properties: &Value) -> String {
    let recording = Recording::read(&folder("tests/fixtures").join(recording));
    let mut messages = ask(&recording.question(), &[], &|command| recording.run(command)).messages;
    messages.pop();
    // As an agent asks: after the tools, with a note in place of the question.
    messages
        .push(Message::text(Role::User, "Give your answer now, in the form that was asked for. Why not?"));
    let format = json!({"type": "json_schema", "json_schema": {"schema": {"properties": properties}}});
    call(Request { messages, response_format: Some(format), ..Request::default() }).message.joined_text()
}

#[test]
fn a_schema_gets_json() {
    let verdict = json!({"workload_healthy": {"type": "boolean"}, "root_cause_summary": {"type": "string"}});
    for (recording, healthy, summary) in [
        ("crash_loop/missing_variable.txt", false, "crash looping"),
        ("general/healthy.txt", true, "nothing wrong"),
    ] {
        let answer: Value = serde_json::from_str(&formed(recording, &verdict)).expect("JSON");
        assert_eq!(answer["workload_healthy"], healthy, "{answer}");
        assert!(answer["root_cause_summary"].as_str().is_some_and(|text| text.contains(summary)), "{answer}");
    }
    let text = json!({"type": ["string", "null"]});
    let sections = json!({"Alert Explanation": text, "Next Steps": text, "External links": text});
    let answer = formed("crash_loop/missing_variable.txt", &sections);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert!(answer["Next Steps"].as_str().is_some_and(|steps| steps.contains("kubectl")), "{answer}");
    assert_eq!(answer["External links"], Value::Null);
}

#[test]
fn a_schema_of_something_else_gets_markdown() {
    let answer = formed("crash_loop/missing_variable.txt", &json!({"haiku": {"type": "string"}}));
    assert!(answer.starts_with("**"), "{answer}");
}

#[test]
fn without_tools_it_answers_with_what_it_has() {
    let question = Message::text(Role::User, "what is wrong in namespace shop?");
    let reply = call(Request { messages: vec![question], ..Request::default() });
    assert!(reply.message.tool_calls.is_empty());
    assert!(reply.message.joined_text().starts_with("**I could not look at anything**"));
}
