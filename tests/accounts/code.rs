//! What code does is in the trail, like what a model does: commands that run unasked, and those that are refused.

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
