//! Accounts: whoever has a key of one reaches nothing of another, and learns nothing of it.

#![cfg(test)]

#[path = "accounts/administration.rs"]
mod administration;
#[path = "accounts/budgets.rs"]
mod budgets;
#[path = "accounts/clusters.rs"]
mod clusters;
#[path = "accounts/code.rs"]
mod code;
#[path = "accounts/deletion.rs"]
mod deletion;
#[path = "accounts/doors.rs"]
mod doors;
#[path = "accounts/objects.rs"]
mod objects;
#[path = "accounts/relays.rs"]
mod relays;
#[path = "accounts/sessions.rs"]
mod sessions;
#[path = "accounts/speakers.rs"]
mod speakers;
#[path = "accounts/trail.rs"]
mod trail;
#[path = "accounts/world.rs"]
mod world;

use std::collections::BTreeSet;

use doors::{DOORS, Door};
use reqwest::Method;
use serde_json::{Value, json};
use world::World;

#[tokio::test]
async fn no_key_of_another_account_opens_anything_or_tells_what_there_is() {
    let world = World::start().await;
    let real = world.victims_runs().await;
    let mut attempts = 0;
    for intruder in &world.intruders {
        for run in &real {
            for door in DOORS {
                let seen = door.attempt(&world, &intruder.key, run).await;
                let nothing = "run_00000000000000000000000000000000";
                let unknown = door.attempt(&world, &intruder.key, nothing).await;
                let place = format!("{door:?} as {} at {}", intruder.name, run.as_str());
                assert!(!seen.succeeded, "{place}: {seen:?}");
                assert_eq!(seen.without(run), unknown.without(nothing), "{place}");
                attempts += 1;
            }
        }
    }
    assert!(attempts >= 400, "{attempts}");
    world.is_untouched(&real).await;
    for door in DOORS.iter().filter(|door| door.shows_its_owner()) {
        let seen = door.attempt(&world, &world.victim, &real[0]).await;
        assert!(seen.succeeded, "{door:?} as the owner: {seen:?}");
    }
}

#[tokio::test]
async fn no_key_of_another_account_opens_a_session_or_settles_a_call() {
    let world = World::start().await;
    let made: Value =
        world.send(Method::POST, "/v1/sessions", &world.victim, &json!({}), &[]).await.json().await.unwrap();
    let session = made["id"].as_str().unwrap();
    let said = sessions::said("what FAKE_LLM{}");
    let path = format!("/v1/sessions/{session}/messages");
    assert!(world.send(Method::POST, &path, &world.victim, &said, &[]).await.status().is_success());
    let before: Value =
        world.get(&format!("/v1/sessions/{session}"), &world.victim).await.json().await.unwrap();
    let nothing = "session_00000000000000000000000000000000";
    let mut attempts = 0;
    for intruder in &world.intruders {
        for way in sessions::sessions() {
            let seen = sessions::attempt(&world, &way, &intruder.key, session).await;
            let unknown = sessions::attempt(&world, &way, &intruder.key, nothing).await;
            let place = format!("{} {} as {}", way.0, way.1, intruder.name);
            assert!(seen.0 >= 400, "{place}: {seen:?}");
            assert_eq!(seen, unknown, "{place}");
            attempts += 1;
        }
        let listed = world.get("/v1/sessions", &intruder.key).await.text().await.unwrap();
        assert!(!listed.contains(session), "{}", intruder.name);
        // The decision of another account is none, whatever it is about.
        let (history, call) = world.waiting().await;
        let stolen = json!({
            "ask": "", "enable_tool_approval": true, "conversation_history": history,
            "tool_decisions": [{ "tool_call_id": call, "approved": true }],
        });
        let taken = world.send(Method::POST, "/api/chat", &intruder.key, &stolen, &[]).await;
        let (status, body) = (taken.status().as_u16(), taken.text().await.unwrap());
        assert!(
            status >= 400 || body.contains("could not be verified"),
            "{}: {status} {body}",
            intruder.name
        );
        attempts += 2;
    }
    assert!(attempts >= 150, "{attempts}");
    let after: Value =
        world.get(&format!("/v1/sessions/{session}"), &world.victim).await.json().await.unwrap();
    assert_eq!((&after["id"], &after["title"]), (&before["id"], &before["title"]));
}

#[tokio::test]
async fn no_key_of_another_account_opens_what_an_account_keeps_or_tells_that_it_is_there() {
    let world = World::start().await;
    let kept = objects::kept(&world).await;
    let mut attempts = 0;
    for intruder in &world.intruders {
        for (kind, id) in &kept {
            let other = objects::like(id);
            for (_, rpc) in objects::RPCS.iter().filter(|(about, _)| about == kind) {
                let seen = objects::call(&world, *rpc, &intruder.key, id).await;
                let unknown = objects::call(&world, *rpc, &intruder.key, &other).await;
                let place = format!("{rpc:?} as {}", intruder.name);
                match (&seen, &unknown) {
                    // Lists are those of the intruder's own account.
                    (Ok(listed), Ok(same)) => {
                        assert!(format!("{rpc:?}").starts_with("List"), "{place}: {listed}");
                        assert!(!listed.contains(id.as_str()) && listed == same, "{place}: {listed}");
                    }
                    (Err(seen), Err(unknown)) => {
                        let said =
                            |status: &tonic::Status| status.message().replace(id, "ID").replace(&other, "ID");
                        assert_eq!((seen.code(), said(seen)), (unknown.code(), said(unknown)), "{place}");
                    }
                    _ => panic!("{place}: {seen:?} {unknown:?}"),
                }
                attempts += 1;
            }
            let (here, nowhere) = (objects::over_http(*kind, id), objects::over_http(*kind, &other));
            for (way, elsewhere) in here.into_iter().zip(nowhere) {
                let place = format!("{} {} as {}", way.0, way.1, intruder.name);
                let answered = async |(method, path, body): (_, String, Value), id: &str| {
                    let answer = world.send(method, &path, &intruder.key, &body, &[]).await;
                    (answer.status().as_u16(), answer.text().await.unwrap().replace(id, "ID"))
                };
                let seen = answered(way, id).await;
                assert!(seen.0 >= 400, "{place}: {seen:?}");
                assert_eq!(seen, answered(elsewhere, &other).await, "{place}");
                attempts += 1;
            }
        }
    }
    assert!(attempts >= 200, "{attempts}");
    for (kind, id) in &kept {
        let rpc = objects::RPCS.iter().find(|(about, _)| about == kind).unwrap().1;
        objects::call(&world, rpc, &world.victim, id).await.unwrap();
    }
}

#[tokio::test]
async fn the_client_of_robustas_document_runs_unchanged() {
    let python = std::env::var("SLEUTH_TEST_PYTHON");
    if !harness::components::has("requests", python.is_ok()) {
        return;
    }
    let world = World::start().await;
    let script = json!({ "rounds": 1, "say": "Let me look.", "answer": "All is well." });
    let question = format!("Which pods are failing on cluster lab? FAKE_LLM{script}");
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/robusta.py");
    let url = world.sleuth.url("/api/holmes/acme/chat").unwrap();
    let mut python = tokio::process::Command::new(python.unwrap());
    let output = python.args([client, &url, &world.victim, &question]).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines, ["AI: Let me look.", "Running tool: bash", "Final analysis: All is well."]);
}

#[tokio::test]
async fn robusta_refuses_in_the_documented_order() {
    let world = World::start().await;
    let good = json!({ "ask": "what FAKE_LLM{}" });
    let bad = json!({ "ask": 7 });
    let named = |cluster: &str| json!({ "ask": "what FAKE_LLM{}", "cluster_id": cluster });
    let failing = json!({ "ask": r#"what FAKE_LLM{"status": 401}"# });
    let [ask, read, limited] = [&world.victim, &world.reader, &world.limited].map(String::as_str);
    for (account, key, body, status) in [
        ("acme", "", &bad, 401),
        ("acme", "slk_0123456789abcdef_0123456789abcdef", &good, 401),
        ("acme", "not a key", &good, 401),
        ("rival", ask, &good, 401),
        ("none", ask, &good, 401),
        ("rival", read, &bad, 401),
        ("acme", read, &bad, 403),
        ("acme", read, &named("nowhere"), 403),
        ("acme", limited, &named("nowhere"), 403),
        ("acme", limited, &named("LAB"), 200),
        ("acme", limited, &good, 200),
        ("acme", ask, &bad, 400),
        ("acme", ask, &json!({}), 400),
        ("acme", ask, &json!([]), 400),
        ("acme", ask, &json!({ "ask": "x", "payload": "text" }), 400),
        ("acme", ask, &json!({ "ask": "x", "model": "none" }), 400),
        ("acme", ask, &named("nowhere"), 404),
        ("acme", ask, &failing, 500),
        ("acme", ask, &named("lab"), 200),
        ("acme", ask, &good, 200),
    ] {
        let (seen, answer) = world.robusta(account, key, body).await;
        assert_eq!(seen, status, "{account} {key} {body}: {answer}");
        if status == 200 {
            assert_eq!(answer["cluster_id"], "lab");
            assert!(answer["analysis"].is_string());
        } else {
            assert!(answer["msg"].as_str().is_some_and(|msg| !msg.is_empty()), "{answer}");
            assert!(answer.get("error_code").is_none_or(Value::is_string), "{answer}");
        }
    }
}

#[tokio::test]
async fn robusta_streams_what_its_document_says() {
    let world = World::start().await;
    let script = json!({ "rounds": 1, "say": "Let me look.", "answer": "All is well." });
    let body = json!({
        "ask": format!("look FAKE_LLM{script}"), "stream": true, "payload": { "cluster": "LAB", "pod": "a-1" },
    });
    let frames = world.robusta_stream("acme", &world.victim, &body).await;
    let fields = |name: &str| {
        let (_, data) = frames.iter().find(|(event, _)| event == name).unwrap();
        data.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(fields("start_tool_calling"), set(&["tool_call_id", "tool_name", "description"]));
    assert_eq!(fields("tool_calling_result"), set(&["tool_call_id", "name", "result"]));
    assert_eq!(fields("ai_message"), set(&["content"]));
    assert_eq!(fields("token_count"), set(&["input_tokens", "output_tokens"]));
    let (last, end) = frames.last().unwrap();
    assert_eq!(
        (last.as_str(), end),
        ("ai_answer_end", &json!({ "analysis": "All is well.", "cluster_id": "lab" }))
    );
    let terminal = ["ai_answer_end", "error", "approval_required"];
    assert_eq!(frames.iter().filter(|(event, _)| terminal.contains(&event.as_str())).count(), 1);
    let (_, result) = frames.iter().find(|(event, _)| event == "tool_calling_result").unwrap();
    assert_eq!(result["result"], json!({ "status": "success", "data": "echo r0t0\nr0t0" }));
    assert!(
        world.openai.requests().iter().any(|asked| asked.body.to_string().contains("a-1")),
        "the payload is seen"
    );
}

#[tokio::test]
async fn robusta_asks_for_an_approval_and_goes_on_with_it() {
    let world = World::start().await;
    let (history, call) = world.waiting().await;
    let body = |approved: bool| {
        json!({
            "ask": "", "stream": true, "enable_tool_approval": true, "conversation_history": history,
            "tool_decisions": [{ "tool_call_id": call, "approved": approved }],
        })
    };
    let frames = world.robusta_stream("acme", &world.victim, &body(true)).await;
    let (_, result) = frames.iter().find(|(event, _)| event == "tool_calling_result").unwrap();
    assert_eq!(
        (&result["tool_call_id"], &result["result"]["status"]),
        (&json!(call), &json!("no_data")),
        "{frames:?}"
    );
    assert_eq!(frames.last().unwrap().0, "ai_answer_end");
    let trail = world.audit("acme").await;
    let kinds: Vec<_> = trail.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    for kind in ["asked", "began", "waits", "allowed", "ended", "closed"] {
        assert!(kinds.contains(&kind), "{kind} is missing in {kinds:?}");
    }
    let allowed = trail.iter().find(|entry| entry["kind"] == "allowed").unwrap();
    assert_eq!((&allowed["by"], &allowed["cluster"]), (&json!(world.victim_id), &json!("lab")), "{allowed}");
}

/// Prints nothing: what a door is called is enough.
impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
