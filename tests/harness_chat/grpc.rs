//! The same for internal services, over gRPC: agents below agents, decisions, and reading on from any place.

use std::{collections::HashSet, time::SystemTime};

use grants::{Decider, SigningKey};
use serde_json::json;
use tokio::time::timeout;
use tonic::Streaming;
use wire::{
    agent::{
        ApprovalRequested, ChatRequest, DecideRequest, Event, Subagents, WatchRequest,
        agent_client::AgentClient, decide_request::Settlement, event::Kind,
    },
    executor::{ExactScope, grant::Scope},
};

use crate::bench::{Bench, SOON, bash, call};

const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE";

async fn next(events: &mut Streaming<Event>) -> Option<Event> {
    timeout(SOON, events.message()).await.expect("an event").unwrap()
}

/// Reads on to a question for a person, or to the end.
async fn until_asked(events: &mut Streaming<Event>, seen: &mut Vec<Event>) -> Option<ApprovalRequested> {
    while let Some(event) = next(events).await {
        let asked = match &event.kind {
            Some(Kind::ApprovalRequested(asked)) => Some(asked.clone()),
            _ => None,
        };
        seen.push(event);
        if asked.is_some() {
            return asked;
        }
    }
    None
}

/// Allows what was asked about last, as whoever holds the key may.
fn allowed(seen: &[Event], account: &str, asked: &ApprovalRequested) -> Vec<u8> {
    let started = seen.iter().rev().find_map(|event| match &event.kind {
        Some(Kind::ToolStarted(started)) => Some((&event.run_id, started.call.clone().unwrap())),
        _ => None,
    });
    let (run, call) = started.unwrap();
    let scope = Scope::Exact(ExactScope {
        execution_id: format!("{run}/{}", asked.call_id),
        tool: call.name,
        arguments_sha256: grants::sha256(call.arguments_json).into(),
        policy_version: asked.policy_version.clone(),
        target: asked.target.clone(),
    });
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs().try_into().unwrap();
    grants::allow(
        &KEY.parse::<SigningKey>().unwrap(),
        scope,
        Decider { account, principal: "a service", now },
    )
}

#[tokio::test]
async fn agents_decisions_and_reading_on_are_there_for_services() {
    let bench = Bench::with(|start, _| start.env("SLEUTH_SIGNING_KEY", KEY)).await;
    let mut client = AgentClient::connect(bench.sleuth.grpc().unwrap()).await.unwrap();
    let part = |command: &str| {
        let script = json!({"steps": [[bash(command)]], "answer": command});
        call("agent", json!({"task": format!("look FAKE_LLM{script}")}))
    };
    let script = json!({"steps": [[part("mkdir a")], [bash("mkdir b")]], "answer": "all"});
    let request = ChatRequest {
        question: format!("look FAKE_LLM{script}"),
        profile: "harness".to_owned(),
        subagents: Some(Subagents { depth: 1, number: 4 }),
        approvals: true,
        waits: true,
        ..ChatRequest::default()
    };
    let mut events = client.chat(request).await.unwrap().into_inner();
    let mut seen = Vec::new();
    let asked = until_asked(&mut events, &mut seen).await.unwrap();
    let Some(Kind::RunStarted(started)) = &seen[0].kind else { panic!("{seen:?}") };
    let (run_id, account) = (seen[0].run_id.clone(), started.account.clone());
    let decide = |call_id: &str, settlement| DecideRequest {
        run_id: run_id.clone(),
        call_id: call_id.to_owned(),
        settlement: Some(settlement),
        ..DecideRequest::default()
    };

    drop(events);
    let grant = Settlement::Grant(allowed(&seen, &account, &asked));
    client.decide(decide(&asked.call_id, grant)).await.unwrap();
    let after_position = seen.last().unwrap().position;
    let watch = |after_position| WatchRequest { run_id: run_id.clone(), after_position, caller: None };
    let mut events = client.watch(watch(after_position)).await.unwrap().into_inner();
    let asked = until_asked(&mut events, &mut seen).await.unwrap();
    client.decide(decide(&asked.call_id, Settlement::Denial("one is enough".to_owned()))).await.unwrap();
    assert!(until_asked(&mut events, &mut seen).await.is_none());

    let mut whole = client.watch(watch(0)).await.unwrap().into_inner();
    let mut all = Vec::new();
    while until_asked(&mut whole, &mut all).await.is_some() {}
    assert_eq!(seen, all, "what was read in parts is what there is");
    let agents: HashSet<_> = all.iter().map(|event| event.agent_id.as_str()).collect();
    assert_eq!(agents.len(), 2);
    let results = all.iter().filter_map(|event| match &event.kind {
        Some(Kind::ToolFinished(finished)) => finished.result.as_ref(),
        _ => None,
    });
    let mut ran = results.clone().filter_map(|result| result.ran.as_ref());
    let ran = ran.find(|ran| ran.ending == "exited").expect("how the command was run");
    assert!(!ran.sandbox.is_empty() && ran.sandbox_layers.iter().any(|layer| layer == "seccomp"), "{ran:?}");
    let results: Vec<_> = results.map(|result| (result.return_code, result.error.as_str())).collect();
    assert_eq!(results[0], (Some(0), ""), "{results:?}");
    assert!(results.iter().any(|(_, error)| error.contains("one is enough")), "{results:?}");
    assert!(matches!(&all.last().unwrap().kind, Some(Kind::RunFinished(end)) if end.answer == "all"));
}
