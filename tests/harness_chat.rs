//! The harness dialect through the whole path: decisions about calls while the stream stays open.

#![cfg(test)]

#[path = "harness_chat/bench.rs"]
mod bench;
#[path = "harness_chat/browser.rs"]
mod browser;
#[path = "harness_chat/bytes.rs"]
mod bytes;
#[path = "harness_chat/code.rs"]
mod code;
#[path = "harness_chat/code_ends.rs"]
mod code_ends;
#[path = "harness_chat/code_input.rs"]
mod code_input;
#[path = "harness_chat/files.rs"]
mod files;
#[path = "harness_chat/grpc.rs"]
mod grpc;
#[path = "harness_chat/readme.rs"]
mod readme;
#[path = "harness_chat/replicas.rs"]
mod replicas;
#[path = "harness_chat/tree.rs"]
mod tree;

use serde_json::{Value, json};

use bench::{Bench, Chat, bash, call, steps};

#[tokio::test]
async fn a_change_waits_for_a_person_and_runs_once_it_is_allowed() {
    let bench = Bench::start().await;
    let mut chat = bench.open(&steps(&["mkdir one"]), None).await;
    let relay = chat.until("relay").await.unwrap();
    assert_eq!((&relay["tool"], &relay["params"]), (&json!("bash"), &json!({"command": "mkdir one"})));
    let (session, id) = (chat.session().to_owned(), relay["id"].as_str().unwrap());
    let yes = json!({"approved": true});
    assert_eq!(bench.answer(&session, id, yes.clone()).await, (200, json!({"success": true})));
    let (status, again) = bench.answer(&session, id, yes.clone()).await;
    assert_eq!((status, again), (404, json!({"error": "Relay not found"})));
    chat.end().await;
    let expected =
        ["connected", "harness_start", "usage", "relay", "tool_call", "tool_result", "usage", "harness_end"];
    assert_eq!(chat.names(), expected);
    assert_eq!(chat.outputs()[0]["result"], json!({"exitCode": 0, "stdout": "", "stderr": ""}));
    assert_eq!(chat.seen.last().unwrap().data["reason"], "final");
    assert_eq!(bench.answer(&session, id, yes).await, (404, json!({"error": "Session not found"})));
}

#[tokio::test]
async fn a_denial_reaches_the_model_which_goes_on() {
    let bench = Bench::start().await;
    let mut chat = bench.open(&steps(&["mkdir one"]), None).await;
    let relay = chat.until("relay").await.unwrap();
    let no = json!({"approved": false, "reason": "use /data"});
    let session = chat.session().to_owned();
    assert_eq!(bench.answer(&session, relay["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    assert_eq!(chat.outputs(), [&json!({"status": "denied", "reason": "use /data"})]);
    assert!(!chat.names().contains(&"tool_call"));
    assert_eq!(chat.seen.last().unwrap().event, "harness_end");
}

#[tokio::test]
async fn always_lets_calls_like_it_run_unasked_from_then_on() {
    let bench = Bench::start().await;
    let mut chat = bench.open(&steps(&["mkdir one", "mkdir two", "touch three"]), Some(json!({}))).await;
    let first = chat.until("relay").await.unwrap();
    let session = chat.session().to_owned();
    let always = json!({"approved": true, "always": true});
    assert_eq!(bench.answer(&session, first["id"].as_str().unwrap(), always).await.0, 200);
    let second = chat.until("relay").await.unwrap();
    assert_eq!(second["params"]["command"], "touch three", "`mkdir two` was not asked about");
    let no = json!({"approved": false});
    assert_eq!(bench.answer(&session, second["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    assert_eq!(chat.outputs().len(), 3);
}

#[tokio::test]
async fn rules_of_the_client_allow_ask_and_forbid_and_lift_no_refusal() {
    let bench = Bench::start().await;
    let rule = |command: &str| json!({"tool": "bash", "params": {"command": command}});
    let permissions = json!({
        "allowlist": [rule("mkdir *"), rule("echo *"), rule("sudo *")],
        "allowOnce": [rule("touch a")],
        "deny": [{"tool": "bash", "params": {"command": "echo secret*"}, "reason": "not that"}],
    });
    let commands = ["mkdir one", "echo secret", "sudo id", "touch a", "touch a"];
    let mut chat = bench.open(&steps(&commands), Some(permissions)).await;
    let relay = chat.until("relay").await.unwrap();
    assert_eq!(relay["params"]["command"], "touch a", "its rule was for one call");
    let session = chat.session().to_owned();
    let no = json!({"approved": false, "reason": "once"});
    assert_eq!(bench.answer(&session, relay["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    let outputs = chat.outputs();
    assert_eq!(outputs[0]["result"]["exitCode"], 0);
    assert_eq!(*outputs[1], json!({"status": "denied", "reason": "not that"}));
    assert!(outputs[2]["error"].as_str().is_some_and(|why| why.contains("sudo")), "{}", outputs[2]);
    assert_eq!(outputs[3]["result"]["exitCode"], 0);
    assert_eq!(*outputs[4], json!({"status": "denied", "reason": "once"}));
}

#[tokio::test]
async fn an_agent_that_waits_does_not_hold_up_the_others() {
    let bench = Bench::start().await;
    let part = |script: Value| json!({"name": "agent", "args": {"task": format!("look FAKE_LLM{script}")}});
    let parts = [part(steps(&["mkdir one"])), part(steps(&["echo hi"])), part(steps(&["mkdir two"]))];
    let mut chat = bench.open(&json!({"steps": [parts], "answer": "all"}), None).await;
    let relays = [chat.until("relay").await.unwrap(), chat.until("relay").await.unwrap()];
    assert_ne!(relays[0]["agentId"], relays[1]["agentId"]);
    let ended = |chat: &Chat| chat.names().contains(&"harness_end");
    while !ended(&chat) {
        chat.until("harness_end").await.expect("the agent that asks nobody ends");
    }
    let session = chat.session().to_owned();
    for (relay, approved) in relays.iter().zip([true, false]) {
        let response = json!({"approved": approved});
        assert_eq!(bench.answer(&session, relay["id"].as_str().unwrap(), response).await.0, 200);
    }
    chat.end().await;
    assert_eq!(chat.names().iter().filter(|name| **name == "harness_end").count(), 4);
    let denied = chat.outputs().into_iter().filter(|output| output["status"] == "denied").count();
    assert_eq!((denied, chat.outputs().len()), (1, 6));
    let starts: Vec<_> = chat.seen.iter().filter(|frame| frame.event == "harness_start").collect();
    let calls: Vec<_> = chat.seen.iter().filter(|frame| frame.event == "tool_call").collect();
    for start in &starts[1..] {
        assert!(calls.iter().any(|call| call.data["id"] == start.data["parentId"]), "{start:?}");
    }
}

#[tokio::test]
async fn a_call_that_nobody_decides_about_in_time_is_denied() {
    let bench = Bench::with(|start, _| start.arg("--decision-seconds").arg("1")).await;
    let stuck = call("bash", json!({"command": "tail -f /dev/null", "timeout": 600}));
    let mut chat = bench.open(&json!({"steps": [[bash("mkdir one")], [stuck]]}), None).await;
    let relay = chat.until("relay").await.unwrap();
    chat.until("tool_call").await.expect("the model goes on");
    let denied = json!({"status": "denied", "reason": "Not run: nobody decided about this call in time."});
    assert_eq!(chat.outputs(), [&denied]);
    let late = bench.answer(chat.session(), relay["id"].as_str().unwrap(), json!({"approved": true})).await;
    assert_eq!(late, (404, json!({"error": "Relay not found"})));
}
