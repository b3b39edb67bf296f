//! Calls in the trail: those of code like those of a model, and by whose word they run that nobody is asked about.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn commands_of_code_are_calls_in_the_trail() {
    let world = World::start().await;
    let code = "await exec('mkdir a'); await exec('rm -rf /tmp/x').catch(() => 0); FINAL('done')";
    let script = json!({ "steps": [[{ "name": "repl", "args": { "code": code } }]] });
    let body = json!({
        "messages": [{ "role": "user", "content": format!("look FAKE_LLM{script}") }],
        "mode": "rlm", "context": "a text",
        "permissions": {
            "allowlist": [{ "tool": "exec", "params": { "command": "mkdir *" } }],
            "deny": [{ "tool": "exec", "params": { "command": "rm *" }, "reason": "not that" }],
        },
    });
    let answer = world.send(Method::POST, "/chat", &world.victim, &body, &[]).await;
    let run = answer.headers()["x-sleuth-run-id"].to_str().unwrap().to_owned();
    let events = answer.text().await.unwrap();
    assert!(events.contains("done"), "{events}");
    let told = |command: &str| events.contains(&format!("exec {{\\\"command\\\":\\\"{command}\\\"}}"));
    assert!(told("mkdir a") && told("rm -rf /tmp/x") && !events.contains("tool_call"), "{events}");

    let mut trail = world.audit_by_command(&["--account", "acme", "--run", &run]).await;
    let steps: Vec<_> = trail.iter_mut().map(|entry| (entry["kind"].take(), entry["what"].take())).collect();
    let kinds: Vec<_> = steps.iter().map(|(kind, _)| kind.as_str().unwrap()).collect();
    assert_eq!(kinds, ["asked", "began", "began", "ended", "began", "ended", "ended", "closed"], "{steps:?}");
    let of = |at: usize, field: &str| steps[at].1[field].as_str().unwrap().to_owned();
    assert_eq!((of(1, "tool"), of(2, "tool"), of(4, "tool")), ("repl".into(), "exec".into(), "exec".into()));
    assert!(of(2, "arguments").contains("mkdir a") && of(4, "arguments").contains("rm -rf"), "{steps:?}");
    assert_eq!((of(2, "by"), of(4, "by")), (world.victim_id.clone(), String::new()), "{steps:?}");
    for (began, ended, status) in [(2, 3, "success"), (4, 5, "error"), (1, 6, "success")] {
        assert_eq!(of(began, "call_id"), of(ended, "call_id"));
        assert_eq!(of(ended, "status"), status, "{steps:?}");
    }
    assert!(of(3, "command").contains("mkdir a"), "{steps:?}");
    assert_eq!(of(5, "error"), "not that");
    assert!(trail.iter().all(|entry| entry["cluster"] == "lab"), "{trail:?}");
}

#[tokio::test]
async fn agents_below_do_not_hide_the_cluster() {
    let world = World::start().await;
    let below = r#"FAKE_LLM{"answer": "below"}"#;
    let code = format!("FINAL(await llm_query('FAKE' + {}, 'part'))", json!(&below["FAKE".len()..]));
    let script = json!({ "steps": [[{ "name": "repl", "args": { "code": code } }]] });
    let body = json!({
        "messages": [{ "role": "user", "content": format!("look FAKE_LLM{script}") }],
        "mode": "rlm", "context": "a text",
    });
    let answer = world.send(Method::POST, "/chat", &world.victim, &body, &[]).await;
    assert!(answer.text().await.unwrap().contains("below"));
    let trail = world.audit("acme").await;
    let asked = trail.iter().filter(|entry| entry["kind"] == "asked").count();
    assert_eq!(asked, 2, "{trail:?}");
    assert!(trail.iter().all(|entry| entry["cluster"] == "lab"), "{trail:?}");
    let there = world.audit("acme&cluster=lab").await;
    assert_eq!(there, trail);
    assert_eq!(world.audit("acme&cluster=elsewhere").await, [Value::Null; 0]);
}

#[tokio::test]
async fn who_said_always_allows_later_calls() {
    let world = World::start().await;
    let colleague = world.operator(&["keys", "create", "--account", "acme"]).await;
    let (key, id) = (colleague["secret"].as_str().unwrap(), colleague["id"].as_str().unwrap());
    let makes = |name: &str| json!([{ "name": "bash", "args": { "command": format!("mkdir {name}"), "suggested_prefixes": ["mkdir"] } }]);
    let looks = json!([{ "name": "bash", "args": { "command": "ls", "suggested_prefixes": ["ls"] } }]);
    let script = json!({ "steps": [makes("a"), makes("b"), looks], "answer": "done" });
    let body = json!({ "messages": [{ "role": "user", "content": format!("look FAKE_LLM{script}") }] });
    let mut answer = world.send(Method::POST, "/chat", &world.victim, &body, &[]).await;
    let mut seen = String::new();
    while let Some(piece) = answer.chunk().await.unwrap() {
        seen += &String::from_utf8_lossy(&piece);
        let find = |kind: &str| seen.split("\n\n").filter_map(data).find(|event| event["type"] == kind);
        let Some(relay) = find("relay") else { continue };
        let session = find("connected").unwrap();
        let word =
            json!({ "sessionId": session["sessionId"], "response": { "approved": true, "always": true } });
        let path = format!("/chat/relay/{}", relay["id"].as_str().unwrap());
        let taken = world.send(Method::POST, &path, key, &word, &[]).await;
        assert!(taken.status().is_success(), "{taken:?}");
        break;
    }
    let rest = answer.text().await.unwrap();
    assert!(rest.contains("done"), "{rest}");
    let trail = world.audit("acme").await;
    let by: Vec<_> = trail
        .iter()
        .filter(|entry| entry["kind"] == "began" || entry["kind"] == "allowed")
        .map(|entry| (entry["kind"].as_str().unwrap(), entry["by"].as_str().unwrap()))
        .collect();
    assert_eq!(by, [("began", ""), ("allowed", id), ("began", id), ("began", "")], "{trail:?}");
}

/// What an event says, if all of it is there.
fn data(event: &str) -> Option<Value> {
    serde_json::from_str(event.lines().find_map(|line| line.strip_prefix("data: "))?).ok()
}
