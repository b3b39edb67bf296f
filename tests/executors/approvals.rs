//! Three executors at one name: what is allowed runs, what is denied does not, what a person allows runs once, and
//! each of them checks that for itself.

use std::time::{SystemTime, UNIX_EPOCH};

use grants::{Decider, SigningKey, allow, sha256};
use harness::client::{self, Stream};
use serde_json::{Value, json};
use wire::{
    agent::event::Kind,
    executor::{Ending, ExactScope, ExecuteRequest, Finished, PlanRequest, execute_event, grant::Scope},
};

use crate::fleet::{Fleet, bash, dial, places, question, until};

pub(crate) async fn held(fleet: &Fleet, command: &str) -> Value {
    let body = json!({ "ask": question(&[vec![bash(command)]]), "enable_tool_approval": true });
    let held = fleet.ask(&body).await;
    assert_eq!(held["requires_approval"], true, "{held}");
    held
}

pub(crate) fn decision(held: &Value, decision: Value) -> Value {
    let mut decision = decision;
    decision["tool_call_id"] = held["pending_approvals"][0]["tool_call_id"].clone();
    json!({
        "ask": "", "enable_tool_approval": true,
        "conversation_history": held["conversation_history"], "tool_decisions": [decision],
    })
}

#[tokio::test]
async fn three_executors_at_one_name_run_what_may_run() {
    let Some(fleet) = Fleet::of_one_name(3).await else { return };
    let calls: Vec<_> = (0..12).map(|call| bash(&format!("echo call-{call}"))).collect();
    let mut used = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let body = json!({ "ask": question(std::slice::from_ref(&calls)), "stream": true });
        let mut stream = Stream::open(&fleet.chat(), &body).await.unwrap();
        let run = stream.run_id().unwrap();
        while let Some(frame) = stream.next().await.unwrap() {
            assert_ne!(frame.data["result"]["status"], "error", "{frame:?}");
        }
        used.extend(places(&fleet.events(&run).await));
    }
    assert_eq!(used.len(), 3, "{used:?}");

    let denied =
        fleet.ask(&json!({ "ask": question(&[vec![bash("sudo id")]]), "enable_tool_approval": true })).await;
    assert!(denied["tool_calls"][0]["result"]["error"].to_string().contains("blocked"), "{denied}");

    let change = format!("echo once >> {}", fleet.path("mark").display());
    let unasked = fleet.ask(&json!({ "ask": question(&[vec![bash(&change)]]) })).await;
    assert!(unasked["tool_calls"][0]["result"]["error"].is_string(), "{unasked}");
    let no = fleet.ask(&decision(&held(&fleet, &change).await, json!({ "approved": false }))).await;
    assert_eq!((fleet.lines("mark"), no["analysis"].as_str()), (0, Some("done")));
    for times in 1..=6 {
        let held = held(&fleet, &change).await;
        let yes = decision(&held, json!({ "approved": true }));
        let answer = fleet.ask(&yes).await;
        assert_eq!(answer["analysis"], "done", "{answer}");
        assert_eq!(fleet.lines("mark"), times, "{answer}");
        fleet.ask(&yes).await;
        assert_eq!(fleet.lines("mark"), times, "a permission counts once");
    }
}

#[tokio::test]
async fn a_change_whose_executor_is_killed_is_in_doubt_and_does_not_begin_again() {
    let mut fleet = Fleet::start(2, &|_, start| start, |start| start).await;
    let change = format!("echo begun >> {}; sleep 60", fleet.path("begun").display());
    let held = held(&fleet, &change).await;
    let mut body = decision(&held, json!({ "approved": true }));
    body["stream"] = true.into();
    let mut stream = Stream::open(&fleet.chat(), &body).await.unwrap();
    let run = stream.run_id().unwrap();
    until("it has begun", async || fleet.lines("begun") == 1).await;
    let mut grpc = fleet.grpc().await;
    let request = wire::agent::WatchRequest { run_id: run.clone(), ..Default::default() };
    let mut events = grpc.watch(request).await.unwrap().into_inner();
    let place = loop {
        if let Some(Kind::CallPlaced(placed)) = events.message().await.unwrap().unwrap().kind {
            break placed.executor;
        }
    };
    fleet.executors.remove(fleet.at(&place)).kill().await.unwrap();
    let mut result = Value::Null;
    while let Some(frame) = stream.next().await.unwrap() {
        if frame.event == "tool_calling_result" {
            result = frame.data;
        }
    }
    let told = result["result"]["error"].as_str().unwrap();
    assert!(told.contains("nobody knows whether it did") && told.contains("Look at the state"), "{result}");
    assert_eq!((fleet.lines("begun"), places(&fleet.events(&run).await).len()), (1, 1));
}

#[tokio::test]
async fn each_executor_checks_permissions_for_itself() {
    let fleet = Fleet::start(3, &|_, start| start, |start| start).await;
    let stranger = SigningKey::generate().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap();
    let arguments = json!({ "command": format!("echo no >> {}", fleet.path("mark").display()) }).to_string();
    for (number, executor) in fleet.executors.iter().enumerate() {
        let mut client = dial(executor).await;
        let plan = PlanRequest {
            tool: "bash".to_owned(),
            arguments_json: arguments.clone(),
            ..PlanRequest::default()
        };
        let plan = client.plan(plan).await.unwrap().into_inner();
        let id = format!("forged-{number}");
        let scope = Scope::Exact(ExactScope {
            execution_id: id.clone(),
            tool: "bash".to_owned(),
            arguments_sha256: sha256(&arguments).into(),
            policy_version: plan.policy_version,
            target: plan.target,
        });
        let forged = allow(&stranger, scope, Decider { account: "", principal: "eve", now });
        for grant in [Vec::new(), b"nonsense".to_vec(), forged] {
            let request = ExecuteRequest {
                execution_id: id.clone(),
                tool: "bash".to_owned(),
                arguments_json: arguments.clone(),
                grant: grant.into(),
                ..ExecuteRequest::default()
            };
            let end = end(client.execute(request).await.unwrap().into_inner()).await;
            assert_eq!(end.ending(), Ending::Refused, "{end:?}");
        }
    }
    assert_eq!(fleet.lines("mark"), 0);
    // What the gateway signs counts there, so that nothing above was refused for another reason.
    let change = format!("echo yes >> {}", fleet.path("mark").display());
    let held = held(&fleet, &change).await;
    client::post(&fleet.chat(), &decision(&held, json!({ "approved": true }))).await.unwrap();
    assert_eq!(fleet.lines("mark"), 1);
}

async fn end(mut events: tonic::Streaming<wire::executor::ExecuteEvent>) -> Finished {
    while let Some(event) = events.message().await.unwrap() {
        if let Some(execute_event::Kind::Finished(finished)) = event.kind {
            return finished;
        }
    }
    panic!("it has no end")
}
